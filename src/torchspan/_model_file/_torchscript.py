# SPDX-License-Identifier: MIT
"""TorchScript files: save one, and read what it says without loading its weights."""

from __future__ import annotations

import pickletools
import re
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchspan._devices import Device
from torchspan._errors import BuildError, ModelFileError
from torchspan._log import notice
from torchspan._model_file._archive import Archive, quiet_torch, written_aside
from torchspan._model_file._description import Description, TensorSpec
from torchspan._model_file._example import ExampleSpec, name_example
from torchspan._model_file._program import evaluating, first_line

__all__ = ["describe_torchscript", "load_torchscript", "save_torchscript"]

_FORWARD = re.compile(r"\n  def forward\(self: [^,)]+((?:,\s*\w+: [^,)=]+(?:=[^,)]+)?)*)\) ->")
_ARGUMENT = re.compile(r"(\w+): ")


def save_torchscript(model: nn.Module, path: Path, example: ExampleSpec, device: Device) -> None:
    """Save ``model`` as TorchScript, on the device that it is meant for.

    The module is scripted, which keeps its branches and loops; where torch cannot script it, that
    is an error and not a trace, which would keep only the branches that the example took.

    Raises:
        BuildError: torch cannot script the module, or the script fails with the example.
        ModelFileError: The file cannot be written.
    """
    notice(
        "TorchScript (.pt) is deprecated in PyTorch and no longer developed; save as .pt2 unless "
        "the program that reads the file needs .pt."
    )
    with evaluating(model):
        shown = name_example(model, example, batched=False)
        try:
            with quiet_torch(), torch.no_grad():
                scripted: Any = torch.jit.script(model)
                scripted(*shown.positional, **shown.by_keyword)
        except Exception as error:
            raise BuildError(
                f"torch.jit.script cannot script {type(model).__name__}: {first_line(error)} Save "
                "it as .pt2, which takes any model that torch.export takes."
            ) from error
    with written_aside(path) as aside, quiet_torch():
        scripted.save(str(aside))
        homes = {each.device for each in (*model.parameters(), *model.buffers())}
        if homes - {device.torch}:
            # The caller's module stays where it is: a script moves as it is loaded.
            load_torchscript(aside, device.torch).save(str(aside))


def load_torchscript(path: Path, device: torch.device) -> Any:
    """Load a TorchScript module onto ``device``.

    Raises:
        ModelFileError: torch cannot read the file.
    """
    load: Any = torch.jit.load
    try:
        with quiet_torch():
            return load(str(path), map_location=device)
    except RuntimeError as error:
        raise ModelFileError(f"{path} cannot be read: {first_line(error)}") from error


def describe_torchscript(archive: Archive) -> Description:
    """What a TorchScript file says: the names of its inputs; the rest is unknown.

    Raises:
        ModelFileError: The file holds weights alone, or is damaged.
    """
    name = _class_name(archive)
    if name is None:
        raise ModelFileError(
            f"{archive.path} holds weights, no model. Give them to 'torchspan export "
            "module.py:Class --weights FILE', which makes a model file of both."
        )
    inputs = None
    code = f"code/{name.rsplit('.', 1)[0].replace('.', '/')}.py"
    if code in archive.names:
        after = archive.text(code).split(f"class {name.rsplit('.', 1)[1]}(", 1)[-1]
        found = _FORWARD.search(after)
        if found is not None and "=" not in found[1]:
            names = _ARGUMENT.findall(found[1])
            inputs = tuple(TensorSpec(each) for each in names)
    return Description(path=archive.path, kind="jit", inputs=inputs)


def _class_name(archive: Archive) -> str | None:
    """The qualified name of the saved module: the first class that its pickle names."""
    if "data.pkl" not in archive.names or not any(n.startswith("code/") for n in archive.names):
        return None
    for opcode, argument, _ in pickletools.genops(archive.read("data.pkl")):
        if opcode.name == "GLOBAL":
            return str(argument).replace(" ", ".")
    return None
