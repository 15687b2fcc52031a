# SPDX-License-Identifier: MIT
"""Write a module as TorchScript, and compare what was written with the module."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from torchspan._errors import ArgumentError, BuildError
from torchspan._model_file import first_line, load_torchscript, relative_error
from torchspan._model_file._archive import quiet_torch, written_aside

__all__ = ["check_script", "read_tensors", "write_script"]

_TOLERANCE = {torch.float64: 1e-9, torch.float16: 3e-2, torch.bfloat16: 1e-1}


def read_tensors(path: Path) -> tuple[Tensor, ...]:
    """Read the model's inputs: a tensor, or one for each of several.

    Raises:
        ArgumentError: The file is not there, or holds something else.
    """
    if not path.is_file():
        raise ArgumentError(f"there is no file {path} with the model's input.")
    try:
        with quiet_torch():
            found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise ArgumentError(
            f"{path} holds no tensors that can be read ({first_line(error)[:120]}). Write them "
            "with torch.save."
        ) from error
    tensors = [found] if isinstance(found, Tensor) else found
    if (
        not isinstance(tensors, (list, tuple))
        or not tensors
        or not all(isinstance(each, Tensor) for each in tensors)
    ):
        raise ArgumentError(
            f"{path} holds a {type(found).__name__}; the model's input is a tensor, or a list of "
            "one tensor for each of several inputs."
        )
    return tuple(tensors)


def write_script(model: nn.Module, path: Path, inputs: Sequence[Tensor] | None) -> None:
    """Write ``model`` as TorchScript: traced with ``inputs`` where there are any, else scripted.

    Raises:
        BuildError: torch cannot translate the module, or it fails with these inputs.
        ModelFileError: The file cannot be written.
    """
    try:
        with quiet_torch():
            trace: Any = torch.jit.trace
            script: Any = torch.jit.script(model) if inputs is None else trace(model, (*inputs,))
    except Exception as error:
        name = type(model).__name__
        if inputs is not None:
            raise BuildError(f"{name} cannot be traced: {first_line(error)}") from error
        raise BuildError(
            f"{name} cannot be scripted: {first_line(error)} Record a call of it instead: --trace "
            "--input_tensor_file T.pt."
        ) from error
    with written_aside(path) as aside, quiet_torch():
        script.save(str(aside))


def check_script(model: nn.Module, path: Path, inputs: Sequence[Tensor]) -> float:
    """Compare a file with the module that it was written from; the largest relative difference.

    Raises:
        BuildError: One of them fails with these inputs, or they differ.
    """
    script = load_torchscript(path, torch.device("cpu"))
    results = []
    for each in (model, script):
        try:
            with torch.no_grad(), quiet_torch():
                results.append(torch.utils._pytree.tree_leaves(each(*inputs)))
        except Exception as error:
            what = "the model" if each is model else str(path)
            raise BuildError(f"{what} fails with these inputs: {first_line(error)}") from error
    largest = 0.0
    for plain, ours in zip(*results, strict=True):
        error_here = relative_error(ours, plain)
        if not error_here <= _TOLERANCE.get(plain.dtype, 1e-5):
            raise BuildError(
                f"{path} gives something else than the model: the relative difference is "
                f"{error_here:.1e}. Do not use it."
            )
        largest = max(largest, error_here)
    return largest
