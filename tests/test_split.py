# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchspan import ArgumentError
from torchspan._split import cut_rows, split_rows


@given(rows=st.integers(0, 10_000), parts=st.integers(1, 300))
def test_a_split_is_even_in_order_and_whole(rows, parts):
    ranges = split_rows(rows, parts)
    assert len(ranges) == parts
    assert [row for each in ranges for row in each] == list(range(rows))
    sizes = [len(each) for each in ranges]
    assert max(sizes) - min(sizes) <= 1


@given(start=st.integers(0, 50), rows=st.integers(0, 3_000), most=st.integers(1, 700))
def test_chunks_are_even_in_order_and_not_too_large(start, rows, most):
    chunks = cut_rows(range(start, start + rows), most)
    assert [row for each in chunks for row in each] == list(range(start, start + rows))
    assert all(0 < len(each) <= most for each in chunks)
    if chunks:
        sizes = [len(each) for each in chunks]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("rows", "parts"), [(-1, 2), (4, 0)])
def test_a_split_that_makes_no_sense_is_refused(rows, parts):
    with pytest.raises(ArgumentError, match="cannot split"):
        split_rows(rows, parts)


def test_chunks_of_nothing_are_refused():
    with pytest.raises(ArgumentError, match="chunks of 0"):
        cut_rows(range(3), 0)
