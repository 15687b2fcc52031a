# SPDX-License-Identifier: MIT
"""Find a model in somebody's file: a class, a function that makes one, or a module that is there.

The file is run, as Python would run it on import; its folder is put first on the path for that, so
that it finds the files beside it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from torchspan._errors import ArgumentError

__all__ = ["find_source", "load_source", "make_model", "parse_argument"]

_BY_ARG = "Give its arguments with --arg VALUE or --arg name=VALUE, in order."


def load_source(text: str, arguments: Sequence[tuple[str | None, Any]]) -> nn.Module:
    """Get the module that ``text`` names.

    Args:
        text: ``"file.py:Name"`` or ``"package.module:Name"``.
        arguments: What to construct it with: names, or None by position, and values.

    Raises:
        ArgumentError: There is no such file or name, or it gives no module.
    """
    found = find_source(text)
    if isinstance(found, nn.Module):
        if arguments:
            raise ArgumentError(f"{text} is a module already, so it takes no --arg.")
        return found
    return make_model(text, found, arguments)


def find_source(text: str) -> Any:
    """Get what ``text`` names, whatever it is.

    Args:
        text: ``"file.py:Name"`` or ``"package.module:Name"``.

    Raises:
        ArgumentError: There is no such file or name.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        told = _told(_import_place(text)) if Path(text).is_file() else ""
        raise ArgumentError(
            f"{text!r} does not say what to export; write 'file.py:ClassName' or "
            f"'package.module:ClassName'.{told}"
        )
    found_in = _import_place(place)
    if not hasattr(found_in, name):
        raise ArgumentError(f"{place} defines no {name!r}.{_told(found_in)}")
    found = getattr(found_in, name)
    if not callable(found):
        raise ArgumentError(
            f"{text} is a {type(found).__name__}; name a torch.nn.Module, its class, or a function "
            f"that returns one.{_told(found_in)}"
        )
    return found


def make_model(
    text: str, make: Any, arguments: Sequence[tuple[str | None, Any]] = (), cure: str = _BY_ARG
) -> nn.Module:
    """Call a class or function for a model.

    Args:
        text: What messages call it.
        make: The class or function.
        arguments: What to call it with: names, or None by position, and values.
        cure: What to do where it wants other arguments.

    Raises:
        ArgumentError: It wants other arguments, fails, or gives no module.
    """
    positional = [value for name, value in arguments if name is None]
    named = {name: value for name, value in arguments if name is not None}
    try:
        signature = inspect.signature(make)
        signature.bind(*positional, **named)
    except TypeError as error:
        raise ArgumentError(f"{text}{signature} cannot be called so: {error}. {cure}") from error
    except ValueError:
        # Classes written in C have no signature; the call itself will tell.
        pass
    try:
        made = make(*positional, **named)
    except Exception as error:
        raise ArgumentError(f"{text} failed: {_last_words(error)}") from error
    if not isinstance(made, nn.Module):
        raise ArgumentError(
            f"{text} gave a {type(made).__name__}, no torch.nn.Module. Name a class of models or a "
            "function that returns one."
        )
    return made


def parse_argument(text: str) -> tuple[str | None, Any]:
    """Parse ``--arg``: ``"64"``, ``"hidden=64"``, ``"sizes=[5,5]"``, ``"activation=relu"``."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        name, value = "", text
    try:
        return name or None, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name or None, value


def _import_place(place: str) -> ModuleType:
    path = Path(place)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise ArgumentError(f"there is no file {place}.")
    sys.path.insert(0, str(path.resolve().parent if is_file else Path.cwd()))
    try:
        return _import_file(path) if is_file else importlib.import_module(place)
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise ArgumentError(
                f"there is no module {place!r} on Python's path. Name a file, such as "
                "'net.py:Net', or run from the folder that holds the package."
            ) from error
        raise ArgumentError(f"{place} cannot be imported: {_last_words(error)}") from error
    except (Exception, SystemExit) as error:
        raise ArgumentError(f"{place} cannot be imported: {_last_words(error)}") from error


def _import_file(path: Path) -> ModuleType:
    # TorchScript and pickle look a class up by its module's name, so it must be known by one.
    name = path.stem if path.stem not in sys.modules else f"torchspan_export_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _told(module: ModuleType) -> str:
    own = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and _belongs(value, module)
    }
    classes = [name for name, value in own.items() if inspect.isclass(value)]
    functions = [name for name, value in own.items() if inspect.isfunction(value)]
    instances = [name for name, value in own.items() if isinstance(value, nn.Module)]
    parts = [
        f"{what} ({', '.join(names)})"
        for what, names in (
            ("classes", classes),
            ("functions", functions),
            ("modules", instances),
        )
        if names
    ]
    return f" It defines {', '.join(parts)}." if parts else " It defines no torch.nn.Module."


def _belongs(value: object, module: ModuleType) -> bool:
    if inspect.isclass(value):
        return issubclass(value, nn.Module) and value.__module__ == module.__name__
    if inspect.isfunction(value):
        return value.__module__ == module.__name__
    return isinstance(value, nn.Module)


def _last_words(error: BaseException) -> str:
    """What an error in somebody's file says, with the place in it."""
    where = ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and not frames[-1].filename.startswith("<"):
        where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text}{where}"
