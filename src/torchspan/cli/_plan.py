# SPDX-License-Identifier: MIT
"""What a run will do, settled and checked before anything runs: rows, blocks, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torchspan._errors import ArgumentError
from torchspan._model_file import BATCH, Description, TensorSpec
from torchspan.cli._npy import DTYPES, Array

__all__ = ["InputFile", "OutputSpec", "Plan", "choose_block", "match_inputs", "predict_outputs"]

BLOCK_BYTES = 64 * 1024**2


@dataclass(frozen=True)
class InputFile:
    """One input: the file and what it holds.

    Attributes:
        path: The file.
        name: The model's input that it is for.
        array: What it holds, mapped into memory.
        batched: Whether its first dimension is the batch; otherwise every block gets all of it.
    """

    path: Path
    name: str
    array: Array
    batched: bool

    @property
    def row_bytes(self) -> int:
        """Bytes of one row; 0 where all rows share it."""
        row = int(np.prod(self.array.shape[1:], dtype=np.int64)) * self.array.dtype.itemsize
        return row if self.batched else 0


@dataclass(frozen=True)
class OutputSpec:
    """One output: its dtype, and its shape without the rows."""

    dtype: str
    tail: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.tail, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Plan:
    """How many rows there are, how many of them are one block, and what comes out.

    Attributes:
        rows: The rows of the inputs, and so of the outputs.
        block: The rows of a block; the last one may have fewer.
        outputs: What each output file holds.
    """

    rows: int
    block: int
    outputs: tuple[OutputSpec, ...]

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.rows // self.block)

    def rows_of(self, block: int) -> range:
        """The rows of one block."""
        return range(block * self.block, min((block + 1) * self.block, self.rows))


def match_inputs(
    description: Description, paths: Sequence[Path], arrays: Sequence[Array]
) -> list[InputFile]:
    """Check the files against what the model says of its inputs.

    Args:
        description: The model's; what it leaves open is not checked.
        paths: The files, in the order of the inputs.
        arrays: What they hold.

    Raises:
        ArgumentError: Their number, a dtype or a shape does not fit, or their rows differ.
    """
    specs = description.inputs
    if specs is None:
        specs = tuple(TensorSpec(f"input {index}") for index in range(len(paths)))
    if len(specs) != len(paths):
        names = ", ".join(spec.name for spec in specs)
        raise ArgumentError(
            f"{_count(len(paths), 'file')} given, but this model takes "
            f"{_count(len(specs), 'input')} ({names}). Give one .npy file for each, in that order."
        )
    sizes: dict[str, tuple[int, Path]] = {}
    for spec, path, array in zip(specs, paths, arrays, strict=True):
        _check_dtype(spec, path, array)
        _check_shape(spec, path, array, sizes)
    found = [
        InputFile(path, spec.name, array, spec.batched)
        for spec, path, array in zip(specs, paths, arrays, strict=True)
    ]
    rows = {each.path: len(each.array) for each in found if each.batched}
    if not rows:
        raise ArgumentError(
            "no input of this model has a batch dimension, so there are no rows to stream. Save it "
            "with dynamic_batch=True, or call it from Python."
        )
    if len(set(rows.values())) > 1:
        told = ", ".join(f"{path} has {number}" for path, number in rows.items())
        raise ArgumentError(f"the inputs have different numbers of rows: {told}.")
    return found


def predict_outputs(
    description: Description, inputs: Sequence[InputFile]
) -> tuple[OutputSpec, ...] | None:
    """What the outputs will be, as far as the description tells; None where it does not.

    Raises:
        ArgumentError: An output cannot be put together from blocks, or not be written as .npy.
    """
    if description.outputs is None:
        return None
    sizes = {
        size: length
        for spec, each in zip(description.inputs or (), inputs, strict=False)
        for size, length in zip(spec.shape or (), each.array.shape, strict=False)
        if isinstance(size, str)
    }
    found = []
    for spec in description.outputs:
        if not spec.batched:
            raise ArgumentError(
                f"output {spec.name!r} has no batch dimension, so it cannot be put together from "
                "blocks of rows. Call the model from Python, or save it without that output."
            )
        if spec.dtype is None or spec.shape is None:
            return None
        if spec.dtype not in DTYPES:
            raise ArgumentError(
                f"output {spec.name!r} is {spec.dtype}, which .npy files cannot hold. Save the "
                "model with float32 outputs."
            )
        tail = [sizes.get(size) if isinstance(size, str) else size for size in spec.shape[1:]]
        if None in tail:
            return None
        found.append(OutputSpec(spec.dtype, tuple(size for size in tail if size is not None)))
    return tuple(found)


def choose_block(
    description: Description, rows: int, row_bytes: int, ranks: int, wanted: int | None
) -> int:
    """How many rows one block has.

    Args:
        description: The model's.
        rows: How many rows there are.
        row_bytes: Bytes that a row has in all inputs and outputs.
        ranks: How many processes share the rows.
        wanted: What the user asked for; None to choose.

    Raises:
        ArgumentError: The rows of this model may not be taken apart, and more than one block is
            wanted.
    """
    if description.rows_independent is False:
        if wanted is not None and wanted < rows:
            raise ArgumentError(
                "each row of this model's result depends on all rows of its inputs, so that "
                f"blocks of {wanted} rows would give another result. Leave out --batch: all "
                f"{rows} rows are then one block."
            )
        return max(rows, 1)
    if wanted is not None:
        return wanted
    _, most = description.limits.get(BATCH, (0, None))
    fitting = min(BLOCK_BYTES // max(row_bytes, 1), -(-rows // ranks))
    return max(1, fitting if most is None else min(fitting, most))


def _check_dtype(spec: TensorSpec, path: Path, array: Array) -> None:
    if spec.dtype is not None and array.dtype.name != spec.dtype:
        raise ArgumentError(
            f"{path} holds {array.dtype.name}, but input {spec.name!r} of this model takes "
            f"{spec.dtype}. Convert the file with numpy's astype, or save the model in "
            f"{array.dtype.name}."
        )


def _check_shape(
    spec: TensorSpec, path: Path, array: Array, sizes: dict[str, tuple[int, Path]]
) -> None:
    if spec.batched and array.ndim == 0:
        raise ArgumentError(f"{path} holds a single number, but input {spec.name!r} has rows.")
    if spec.shape is None:
        return
    wanted = ", ".join("?" if size is None else str(size) for size in spec.shape)
    message = (
        f"{path} has shape {array.shape}, but input {spec.name!r} of this model takes ({wanted})"
    )
    if array.ndim != len(spec.shape):
        raise ArgumentError(f"{message}.")
    for index, (size, length) in enumerate(zip(spec.shape, array.shape, strict=True)):
        if isinstance(size, int) and size != length:
            raise ArgumentError(f"{message}.")
        # Rows are compared for all inputs at once, with a message of their own.
        if isinstance(size, str) and not (index == 0 and spec.batched):
            known, where = sizes.setdefault(size, (length, path))
            if known != length:
                raise ArgumentError(f"{message}, and {where} says that {size} is {known}.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
