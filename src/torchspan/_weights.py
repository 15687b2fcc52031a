# SPDX-License-Identifier: MIT
"""Load weights from a file into a module, and say exactly what does not fit."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from torchspan._errors import ArgumentError

__all__ = ["load_weights"]

_SHOWN = 5


def load_weights(model: nn.Module, path: Path) -> None:
    """Load a state dict into ``model``.

    Args:
        model: The module.
        path: A ``.safetensors`` file, or what ``torch.save(net.state_dict(), path)`` wrote. No
            code in it is run.

    Raises:
        ArgumentError: The file cannot be read, holds something else, or does not fit the module.
    """
    given = _read(path)
    wanted = model.state_dict()
    problems = [
        *_list("it lacks", [name for name in wanted if name not in given]),
        *_list("the model has no", [name for name in given if name not in wanted]),
        *_list(
            "of another shape are",
            [
                f"{name} ({_shape(given[name])}, the model's is {_shape(wanted[name])})"
                for name in wanted
                if name in given and given[name].shape != wanted[name].shape
            ],
        ),
    ]
    if problems:
        raise ArgumentError(
            f"the weights in {path} do not fit {type(model).__name__}: {'; '.join(problems)}."
            f"{_hint(given, wanted)}"
        )
    model.load_state_dict(given)


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ArgumentError(f"there is no file {path} with weights.")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings():
            # torch doubts pickles of other protocols; whether it can read them shows by itself.
            warnings.simplefilter("ignore", UserWarning)
            found = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise ArgumentError(
            f"{path} holds no weights that can be read without running its code "
            f"({str(error).splitlines()[0][:120] if str(error) else type(error).__name__}). Write "
            "them with torch.save(net.state_dict(), ...) or safetensors."
        ) from error
    if isinstance(found, dict) and found and all(isinstance(v, Tensor) for v in found.values()):
        return {str(name): value for name, value in found.items()}
    what = f"a {type(found).__name__}"
    if isinstance(found, dict):
        what += f" of {', '.join(map(str, list(found)[:_SHOWN])) or 'nothing'}"
    raise ArgumentError(
        f"{path} holds {what}, no state dict of tensors. Write one with "
        "torch.save(net.state_dict(), ...), or safetensors."
    )


def _hint(given: dict[str, Tensor], wanted: dict[str, Tensor]) -> str:
    for prefix in ("module.", "_orig_mod."):
        if {name.removeprefix(prefix) for name in given} == set(wanted):
            return (
                f" Their names begin with {prefix!r}, as DistributedDataParallel and torch.compile "
                "write them: save the state dict of the module inside."
            )
    return ""


def _list(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"{what} {', '.join(names[:_SHOWN])}{more}"]


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a single number"
