# SPDX-License-Identifier: MIT
"""A model's class and its trained state, read without running code of the state's file.

A file that holds a whole module names classes. They are looked up among the modules that the
definition has imported by then, so what runs is the definition's code and torch's alone.
"""

from __future__ import annotations

import inspect
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from torchspan._errors import ArgumentError
from torchspan._model_file._archive import quiet_torch
from torchspan._source import find_source, make_model
from torchspan._weights import load_weights

__all__ = ["load_trained"]

_FUNCTIONS = ("torch.nn.functional.", "torch._C._nn.")


def load_trained(definition: Path, name: str, state: Path) -> nn.Module:
    """Load a model, on the CPU.

    Args:
        definition: The file that defines it.
        name: Its class, or a function that makes one.
        state: What ``torch.save`` wrote of its state dict or of the model itself, or
            ``.safetensors``.

    Raises:
        ArgumentError: One of the files is not there or does not fit the other.
    """
    text = f"{definition}:{name}"
    if definition.suffix != ".py":
        raise ArgumentError(f"{definition} is no Python file. Name the file that defines {name}.")
    found = find_source(text)
    classes = _named_classes(state)
    if classes:
        return _load_whole(state, name, found, classes)
    cure = f"Give them defaults, or save the whole model with torch.save(model, '{state}')."
    model = found if isinstance(found, nn.Module) else make_model(text, found, cure=cure)
    load_weights(model, state)
    return model


def _named_classes(state: Path) -> list[str]:
    """What the file names beyond tensors and containers; nothing where it is of another kind."""
    if not state.is_file():
        raise ArgumentError(f"there is no file {state} with the model's state.")
    try:
        return get_unsafe_globals_in_checkpoint(state)
    except (ValueError, RuntimeError) as error:
        if "torchscript" in str(error):
            raise ArgumentError(
                f"{state} is TorchScript already: programs open it as it is. To make it anew, give "
                "what torch.save wrote of the model or its state dict."
            ) from error
        # No whole archive of torch's: .safetensors, an older state dict, or something to refuse.
        return []


def _load_whole(state: Path, name: str, found: Any, classes: list[str]) -> nn.Module:
    home = sys.modules[found.__module__]
    known: list[Any] = [(_look_up(each, home, state), each) for each in classes]
    try:
        with safe_globals(known), quiet_torch():
            model = torch.load(state, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, AttributeError, TypeError) as error:
        raise ArgumentError(
            f"{state} cannot be read ({str(error).splitlines()[0][:120]}). Save its state alone: "
            "torch.save(model.state_dict(), ...)."
        ) from error
    wanted = found if inspect.isclass(found) else nn.Module
    if not isinstance(model, wanted) or not isinstance(model, nn.Module):
        raise ArgumentError(f"{state} holds a {type(model).__name__}, no {name}.")
    return model


def _look_up(path: str, home: ModuleType, state: Path) -> Any:
    """A class that the file names, or the definition's own where it was saved as a main program."""
    place, _, name = path.rpartition(".")
    modules = [sys.modules.get(place)]
    if place in ("__main__", home.__name__, Path(str(home.__file__)).stem):
        modules.insert(0, home)
    for module in modules:
        thing = getattr(module, name, None)
        if inspect.isclass(thing) and issubclass(thing, nn.Module):
            return thing
        if callable(thing) and path.startswith(_FUNCTIONS):
            return thing
    raise ArgumentError(
        f"{state} holds a {path}, which is neither torch's nor defined or imported by "
        f"{Path(str(home.__file__)).name}, so it is not loaded. Save the state alone: "
        "torch.save(model.state_dict(), ...)."
    )
