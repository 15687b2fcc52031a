# SPDX-License-Identifier: MIT
import argparse

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchspan import ArgumentError
from torchspan.cli._inputs import DTYPES, Shown, make_example, parse_dynamic, parse_shown

SIZES = st.lists(st.integers(1, 10**6), min_size=1, max_size=6)
NAMES = st.none() | st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


@given(SIZES, NAMES, st.none() | st.sampled_from(sorted(DTYPES)))
def test_what_is_written_is_read(sizes, name, dtype):
    text = "x".join(map(str, sizes))
    text = text if name is None else f"{name}={text}"
    text = text if dtype is None else f"{text}:{dtype}"
    found = parse_shown(text)
    assert found == Shown(name, tuple(sizes), None if dtype is None else DTYPES[dtype])


def test_a_single_number_is_an_input_too():
    assert parse_shown("scalar:float64") == Shown(None, (), torch.float64)
    assert parse_shown("t=scalar") == Shown("t", (), None)


@pytest.mark.parametrize(
    "text",
    ["", "x", "1x", "x5", "1,5", "0x5", "-1x5", "1x5:", "=1x5", "1x=5", "1x5 ", "2a=1x5", "٣x5"],
)
def test_wrong_syntax_says_what_is_right(text):
    with pytest.raises(argparse.ArgumentTypeError, match="write '1x5', '8x3x224x224:float16'"):
        parse_shown(text)


def test_an_unknown_dtype_lists_the_known_ones():
    with pytest.raises(argparse.ArgumentTypeError, match="'double', which is not known; known are"):
        parse_shown("1x5:double")


def test_examples_come_in_order_or_by_name():
    first, second = make_example([parse_shown("2x3"), parse_shown("2:int64")], torch.float64, 0)
    assert (first.shape, first.dtype, second.dtype) == ((2, 3), torch.float64, torch.int64)
    named = make_example([parse_shown("b=1x2"), parse_shown("a=3")], torch.float32, 0)
    assert list(named) == ["b", "a"]


@pytest.mark.parametrize("texts", [("x=1", "2"), ("x=1", "x=2"), ("1", "2", "x=3")])
def test_half_named_examples_are_refused(texts):
    with pytest.raises(ArgumentError, match="some of the examples have names"):
        make_example([parse_shown(text) for text in texts], torch.float32, 0)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_values_are_of_their_dtype_and_valid_anywhere(dtype):
    (drawn,) = make_example([parse_shown(f"50x4:{dtype}")], torch.float32, 3)
    assert drawn.dtype == DTYPES[dtype]
    assert len(set(drawn.flatten().tolist())) > 1
    if not (drawn.is_floating_point() or drawn.is_complex()):
        assert drawn.to(torch.int64).unique().tolist() == [0, 1]


def test_values_repeat_with_their_seed_and_leave_torchs_own_alone():
    shown = [parse_shown("4x4")]
    state = torch.random.get_rng_state()
    first = make_example(shown, torch.float32, 1)[0]
    assert torch.equal(first, make_example(shown, torch.float32, 1)[0])
    assert not torch.equal(first, make_example(shown, torch.float32, 2)[0])
    assert torch.equal(state, torch.random.get_rng_state())


def test_further_dimensions():
    assert parse_dynamic("x:2=nx") == ("x", 2, "nx")
    for text in ("x:nx", "x:2", "2=nx", "x:-1=nx", "x:2=", "x:2=3"):
        with pytest.raises(argparse.ArgumentTypeError, match="write 'x:2=nx'"):
            parse_dynamic(text)
