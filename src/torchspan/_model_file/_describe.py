# SPDX-License-Identifier: MIT
"""Read what a model file says about itself, whatever kind it is, without its weights."""

from __future__ import annotations

import ast
from pathlib import Path

from torchspan._errors import ModelFileError, ModelFileNotFoundError
from torchspan._model_file._archive import DESCRIPTION, Archive
from torchspan._model_file._description import Description, TensorSpec
from torchspan._model_file._torchscript import describe_torchscript

__all__ = ["FORWARD_NAMES", "describe"]

# What a script may call its forward pass: torchspan's name, and pytorch-fortran's.
FORWARD_NAMES = ("forward", "ftn_pytorch_forward")


def describe(path: str | Path) -> Description:
    """Read what the model file at ``path`` says about itself, without loading its weights.

    Args:
        path: A ``.pt2`` file, a TorchScript ``.pt`` file or a ``.py`` script.

    Returns:
        The description; what a file does not say is None.

    Raises:
        ModelFileError: The file is truncated, damaged, no model file, or of a newer format.
        ModelFileNotFoundError: There is no such file.
    """
    file = Path(path)
    if file.suffix == ".py":
        return _describe_script(file)
    with Archive(file) as archive:
        if DESCRIPTION in archive.names:
            return Description.from_json(archive.text(DESCRIPTION), file)
        if "archive_format" in archive.names:
            return _describe_plain(archive)
        if "data.pkl" in archive.names:
            return describe_torchscript(archive)
    raise ModelFileError(
        f"{file} is an archive of another kind: it holds neither an exported program nor "
        "TorchScript. Make a model file with torchspan.save or 'torchspan export'."
    )


def _describe_plain(archive: Archive) -> Description:
    """A ``.pt2`` that plain PyTorch wrote: it opens, but says nothing of itself."""
    if not any(name.startswith("models/") for name in archive.names):
        raise ModelFileError(
            f"{archive.path} holds no exported program (torch's aoti_compile_and_package leaves it "
            "out). Save the model with torchspan.save, or with torch.export.save."
        )
    return Description(path=archive.path, kind="pt2")


def _describe_script(file: Path) -> Description:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
    except FileNotFoundError as error:
        raise ModelFileNotFoundError(f"there is no model file {file}.") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{file} is no Python script: {error}.") from error
    except OSError as error:
        raise ModelFileError(f"{file} cannot be read: {error.strerror}.") from error
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    for name in FORWARD_NAMES:
        found = functions.get(name)
        if found is None:
            continue
        # An argument that may be left out, or any number of them: how many is not known.
        if name == "ftn_pytorch_forward" or found.args.vararg or found.args.defaults:
            return Description(path=file, kind="script")
        arguments = [*found.args.posonlyargs, *found.args.args]
        return Description(
            path=file, kind="script", inputs=tuple(TensorSpec(each.arg) for each in arguments)
        )
    raise ModelFileError(
        f"{file} defines no function forward (or ftn_pytorch_forward), which is what torchspan "
        "calls. Add 'def forward(x): ...'; to save a class as a model file, use 'torchspan export'."
    )
