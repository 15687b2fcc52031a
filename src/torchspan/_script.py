# SPDX-License-Identifier: MIT
"""Python scripts as models: how they are read, run, called, trained and saved.

The native library carries this file and runs it in the interpreter that it starts, so that a script
means the same from C and Fortran. Hence it imports torch and the standard library alone.
"""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

__all__ = ["Script", "ScriptError", "read_inputs", "take_apart", "tell"]

# torchspan's name for each function of a script, and pytorch-fortran's, which takes its inputs as
# one list, scalars as numbers.
LISTED = {
    "forward": "ftn_pytorch_forward",
    "train": "ftn_pytorch_train",
    "save": "ftn_pytorch_save",
}
EXAMPLES = {
    "forward": "'def forward(x): ...'",
    "train": "'def train(x, target): ...', which returns (completed, loss) or the loss",
    "save": "'def save(path): ...'",
}

_number = count()


class ScriptError(Exception):
    """A script cannot be read or run, or it lacks a function that is called."""


def read_inputs(path: Path) -> tuple[str, ...] | None:
    """The names of the inputs of a script's forward pass, without running the script.

    Returns:
        The names; None where ``forward`` takes no certain number of inputs.

    Raises:
        ScriptError: It is no Python, or it defines no forward pass.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except FileNotFoundError:
        raise
    except (SyntaxError, ValueError) as error:
        raise ScriptError(f"{path} is no Python script: {error}.") from error
    except OSError as error:
        raise ScriptError(f"{path} cannot be read: {error.strerror}.") from error
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    found = functions.get("forward")
    if found is None:
        if LISTED["forward"] in functions:
            return None
        raise ScriptError(
            f"{path} defines no function forward (or ftn_pytorch_forward), which is what torchspan "
            "calls. Add 'def forward(x): ...'; to save a class as a model file, use 'torchspan "
            "export'."
        )
    # An argument that may be left out, or any number of them: how many is not known.
    if found.args.vararg or found.args.defaults:
        return None
    return tuple(each.arg for each in [*found.args.posonlyargs, *found.args.args])


class Script:
    """A script that was run once for one device.

    While the script runs, tensors and modules that it makes land on the device without its naming
    one; what it makes later is its own affair. Each device has a run of its own.

    Args:
        path: The script.
        device: Where it computes.

    Raises:
        ScriptError: The script raised an exception.
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        self._path = path
        # A name of its own, so that several scripts called model.py may be open.
        self._module = ModuleType(f"torchspan_script_{next(_number)}_{path.stem}")
        self._module.__file__ = str(path)
        sys.modules[self._module.__name__] = self._module
        folder = str(path.resolve().parent)
        sys.path.insert(0, folder)
        try:
            code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
            with device:
                exec(code, vars(self._module))
        except (Exception, SystemExit) as error:
            self.close()
            raise ScriptError(
                f"the script {path} failed while it was loaded: {_brief(error)}"
            ) from error
        finally:
            # Last from now on: what the script imports later is found, and nothing else is hidden.
            sys.path.remove(folder)
            if folder not in sys.path:
                sys.path.append(folder)

    def __call__(self, *inputs: Tensor) -> Any:
        """Run the forward pass and give what it returns."""
        function, listed = self._find("forward")
        return function(_listed(inputs)) if listed else function(*inputs)

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        """Run the forward pass and give its tensors in a row."""
        return take_apart(self(*inputs))[0]

    def train(self, inputs: Sequence[Tensor], targets: Sequence[Tensor]) -> tuple[bool, float]:
        """Take one training step.

        Returns:
            Whether training is complete, and the loss.

        Raises:
            ScriptError: It has no such function, or that returns something else.
        """
        function, listed = self._find("train")
        given = [_listed(inputs)] if listed else inputs
        result = function(*given, *targets)
        both = result if isinstance(result, tuple) and len(result) == 2 else (False, result)
        completed, loss = (each.detach() if isinstance(each, Tensor) else each for each in both)
        try:
            return bool(completed), float(loss)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ScriptError(
                f"train in {self._path} returned a {_kind(result)}; it must return (completed, "
                "loss), a truth and a number, or the loss alone."
            ) from error

    def save(self, path: str) -> None:
        """Have the script save itself to ``path``.

        Raises:
            ScriptError: It has no such function.
        """
        self._find("save")[0](path)

    def close(self) -> None:
        """Forget the script's module."""
        sys.modules.pop(self._module.__name__, None)

    def _find(self, name: str) -> tuple[Callable[..., Any], bool]:
        """The function, and whether it takes its inputs in a list."""
        for each in (name, LISTED[name]):
            found = getattr(self._module, each, None)
            if callable(found):
                return found, each != name
        raise ScriptError(
            f"{self._path} defines no function {name} (or {LISTED[name]}). Add {EXAMPLES[name]}."
        )


def take_apart(result: object) -> tuple[list[Tensor], str, tuple[str, ...]]:
    """Take what a model returned apart.

    Returns:
        Its tensors in a row; ``"tensor"``, ``"tuple"`` or ``"dict"``; the keys of a dict.

    Raises:
        ScriptError: It is no tensor, nor a tuple, list or dict of tensors.
    """
    if isinstance(result, Tensor):
        return [result], "tensor", ()
    values: list[object] = []
    returns = "tuple"
    names: tuple[str, ...] = ()
    if isinstance(result, Mapping):
        values, returns, names = list(result.values()), "dict", tuple(map(str, result))
    elif isinstance(result, tuple | list):
        values = list(result)
    tensors = [each for each in values if isinstance(each, Tensor)]
    if not values or len(tensors) != len(values):
        raise ScriptError(
            f"the model returned a {_kind(result)}; it must return a tensor, or a tuple, list or "
            "dict of tensors."
        )
    return tensors, returns, names


def tell(error: BaseException) -> tuple[str, str, bool]:
    """What to say of an exception.

    Returns:
        One line; the traceback from the script on, empty where nothing was raised in it; whether
        memory ran out.
    """
    own = isinstance(error, ScriptError)
    cause = error.__cause__ if own else error
    line = str(error) if own else _brief(error)
    if cause is None:
        return line, "", False
    frames = cause.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    trace = "".join(traceback.format_exception(type(cause), cause, frames)).strip()
    return line, trace, isinstance(cause, MemoryError | torch.OutOfMemoryError)


def _listed(inputs: Sequence[Tensor]) -> list[Any]:
    """Inputs as pytorch-fortran gives them: its scalars are numbers."""
    return [each if each.ndim else each.item() for each in inputs]


def _brief(error: BaseException) -> str:
    text = str(error).strip()
    return type(error).__name__ + (f": {text.splitlines()[0]}" if text else "")


def _kind(value: object) -> str:
    items: Iterable[object] = ()
    if isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, tuple | list):
        items = value
    told = ", ".join(type(each).__name__ for each in items)
    return type(value).__name__ + (f" of {told}" if told else "")
