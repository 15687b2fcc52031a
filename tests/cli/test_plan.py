# SPDX-License-Identifier: MIT
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchspan import ArgumentError
from torchspan._model_file import Description, TensorSpec
from torchspan.cli._plan import (
    BLOCK_BYTES,
    OutputSpec,
    Plan,
    choose_block,
    match_inputs,
    predict_outputs,
)

X = TensorSpec("x", "float32", ("batch", 5))
GRID = TensorSpec("grid", "float32", ("nx", 2), batched=False)
FIELD = TensorSpec("field", "float32", ("batch", "nx"))


def described(inputs=(X,), outputs=None, independent=True):
    return Description(
        path=Path("net.pt2"),
        kind="pt2",
        inputs=inputs,
        outputs=outputs,
        rows_independent=independent,
    )


def matched(description, *arrays):
    paths = [Path(f"{name}.npy") for name in "abc"[: len(arrays)]]
    return match_inputs(description, paths, arrays)


def refusal(description, *arrays):
    with pytest.raises(ArgumentError) as caught:
        matched(description, *arrays)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def floats(*shape):
    return np.zeros(shape, np.float32)


def test_files_that_fit_are_matched_with_their_inputs():
    (found,) = matched(described(), floats(7, 5))
    assert (found.name, found.batched, found.row_bytes) == ("x", True, 20)
    shared, field = matched(described((GRID, FIELD)), floats(6, 2), floats(7, 6))
    assert (shared.batched, shared.row_bytes) == (False, 0)
    assert (field.batched, field.row_bytes) == (True, 24)


def test_an_unknown_model_takes_any_files_with_equal_rows():
    found = matched(described(None), floats(7, 5), np.zeros(7, np.int64))
    assert [each.batched for each in found] == [True, True]
    named = matched(described((TensorSpec("x"), TensorSpec("y"))), floats(7, 5), floats(7))
    assert [each.name for each in named] == ["x", "y"]


def test_the_byte_order_does_not_matter():
    assert matched(described(), floats(7, 5).astype(">f4"))


def test_the_number_of_files():
    message = refusal(described((X, FIELD)), floats(7, 5))
    assert message.startswith("1 file given, but this model takes 2 inputs (x, field).")
    assert "2 files given, but this model takes 1 input (x)" in refusal(
        described(), floats(7, 5), floats(7, 5)
    )


def test_a_dtype_that_does_not_fit_names_file_input_and_both_dtypes():
    message = refusal(described(), np.zeros((7, 5)))
    assert "a.npy holds float64, but input 'x' of this model takes float32" in message
    assert "save the model in float64" in message


@pytest.mark.parametrize("shape", [(7, 4), (7,), (7, 5, 1), (5,)])
def test_a_shape_that_does_not_fit(shape):
    message = refusal(described(), floats(*shape))
    assert f"a.npy has shape {shape}, but input 'x' of this model takes (batch, 5)." in message


def test_a_single_number_has_no_rows():
    assert "input 'x' has rows" in refusal(described(), floats())
    assert "input 'input 0' has rows" in refusal(described(None), floats())


def test_named_dimensions_must_agree_between_files():
    message = refusal(described((GRID, FIELD)), floats(6, 2), floats(7, 8))
    assert "b.npy has shape (7, 8)" in message
    assert "and a.npy says that nx is 6" in message


def test_rows_must_agree_between_files():
    message = refusal(described((X, FIELD)), floats(7, 5), floats(9, 3))
    assert message == "the inputs have different numbers of rows: a.npy has 7, b.npy has 9."


def test_a_model_without_a_batch_cannot_be_streamed():
    message = refusal(described((GRID,)), floats(6, 2))
    assert "no input of this model has a batch dimension" in message


def test_outputs_are_predicted_where_every_dimension_is_known():
    outputs = (
        TensorSpec("y", "float32", ("batch", 3)),
        TensorSpec("z", "int64", ("batch", "nx")),
        TensorSpec("w", "bool", ("batch",)),
    )
    description = described((GRID, FIELD), outputs)
    found = predict_outputs(description, matched(description, floats(6, 2), floats(7, 6)))
    assert found == (OutputSpec("float32", (3,)), OutputSpec("int64", (6,)), OutputSpec("bool", ()))
    assert [each.row_bytes for each in found] == [12, 48, 1]


@pytest.mark.parametrize(
    "outputs",
    [
        None,
        (TensorSpec("y"),),
        (TensorSpec("y", "float32", ("batch", None)),),
        (TensorSpec("y", "float32", ("batch", "elsewhere")),),
    ],
)
def test_outputs_that_the_description_leaves_open_are_not_predicted(outputs):
    description = described((X,), outputs)
    assert predict_outputs(description, matched(description, floats(7, 5))) is None


def test_an_output_without_rows_is_refused():
    description = described((X,), (TensorSpec("norm", "float32", (), batched=False),))
    with pytest.raises(ArgumentError, match="output 'norm' has no batch dimension"):
        predict_outputs(description, matched(description, floats(7, 5)))


def test_an_output_that_npy_cannot_hold_is_refused():
    description = described((X,), (TensorSpec("y", "bfloat16", ("batch", 5)),))
    with pytest.raises(ArgumentError, match=r"bfloat16, which \.npy files cannot hold"):
        predict_outputs(description, matched(description, floats(7, 5)))


def test_blocks_are_as_asked():
    assert choose_block(described(), 100, 20, 1, 7) == 7
    assert choose_block(described(), 100, 20, 1, 1000) == 1000


def test_blocks_are_chosen_by_bytes_and_spread_over_ranks():
    assert choose_block(described(), 10**9, 1024, 1, None) == BLOCK_BYTES // 1024
    assert choose_block(described(), 100, 1024, 3, None) == 34
    assert choose_block(described(), 100, BLOCK_BYTES * 2, 3, None) == 1
    assert choose_block(described(), 0, 20, 1, None) == 1


def test_blocks_keep_to_the_largest_batch_that_a_model_takes():
    limited = replace(described(), limits={"batch": (0, 128)})
    assert choose_block(limited, 10**6, 20, 1, None) == 128
    assert choose_block(limited, 50, 20, 1, None) == 50


def test_rows_that_depend_on_each_other_stay_together():
    together = described(independent=False)
    assert choose_block(together, 100, BLOCK_BYTES, 4, None) == 100
    assert choose_block(together, 100, 20, 1, 100) == 100
    assert choose_block(together, 0, 20, 1, None) == 1
    with pytest.raises(ArgumentError, match="blocks of 50 rows would give another result"):
        choose_block(together, 100, 20, 1, 50)


@given(st.integers(0, 500), st.integers(1, 60))
def test_blocks_hold_every_row_once_and_in_order(rows, block):
    plan = Plan(rows, block, ())
    ranges = [plan.rows_of(number) for number in range(plan.blocks)]
    assert [row for each in ranges for row in each] == list(range(rows))
    assert all(len(each) == block for each in ranges[:-1])
