# SPDX-License-Identifier: MIT
"""The program stored in a ``.pt2`` file, with the example that it was exported with.

Files that plain PyTorch wrote say nothing of themselves, so their program is asked: the size that
stands first in the first input is taken for the batch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchspan._model_file._archive import read_program
from torchspan._model_file._compare import rows_independent
from torchspan._model_file._description import BATCH, Description
from torchspan._model_file._example import Example
from torchspan._model_file._program import (
    describe_outputs,
    describe_tensor,
    input_values,
    measure_row_bytes,
)

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["read_stored"]


def read_stored(
    path: Path, description: Description
) -> tuple[ExportedProgram, Description, Example]:
    """Read the program of a file, its full description, and an example.

    Raises:
        ModelFileError: The file holds no program, or is damaged.
        ArgumentError: The program's outputs are no tensors.
    """
    program = read_program(path)
    if description.inputs is not None:
        return program, description, _example(program, description)
    described = _describe(program, description)
    shown = _example(program, described)
    return program, replace(described, rows_independent=rows_independent(program, shown)), shown


def _example(program: ExportedProgram, description: Description) -> Example:
    positional, named = program.example_inputs or ((), {})
    specs = description.inputs or ()
    # Inputs by keyword go by the model's own names, whatever the file calls them.
    names = [*(spec.name for spec in specs[: len(positional)]), *named]
    dynamic = {
        name: {
            index: size
            for index, size in enumerate(spec.shape or ())
            if isinstance(size, str) and not (index == 0 and spec.batched)
        }
        for name, spec in zip(names, specs, strict=True)
    }
    return Example(
        dict(zip(names, [*positional, *named.values()], strict=True)),
        frozenset(named),
        frozenset(name for name, spec in zip(names, specs, strict=True) if not spec.batched),
        dynamic,
        any(spec.batched for spec in specs),
    )


def _describe(program: ExportedProgram, description: Description) -> Description:
    values = input_values(program)
    symbols: dict[str, str] = {}
    if values and values[0].ndim and not str(values[0].shape[0]).isdigit():
        symbols[str(values[0].shape[0])] = BATCH
    for value in values:
        for size in value.shape:
            if not str(size).isdigit():
                symbols.setdefault(str(size), str(size))
    names = map(str, program.graph_signature.user_inputs)
    inputs = [describe_tensor(*each, symbols) for each in zip(names, values, strict=True)]
    outputs, returns = describe_outputs(program, symbols, None)
    return replace(
        description,
        inputs=tuple(inputs),
        outputs=outputs,
        returns=returns,
        row_bytes=measure_row_bytes(program),
    )
