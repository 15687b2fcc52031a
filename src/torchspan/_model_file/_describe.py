# SPDX-License-Identifier: MIT
"""Read what a model file says about itself, whatever kind it is, without its weights."""

from __future__ import annotations

from pathlib import Path

from torchspan._errors import ModelFileError, ModelFileNotFoundError
from torchspan._model_file._archive import DESCRIPTION, Archive
from torchspan._model_file._description import Description, TensorSpec
from torchspan._model_file._torchscript import describe_torchscript
from torchspan._script import ScriptError, read_inputs

__all__ = ["describe"]


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
        names = read_inputs(file)
    except FileNotFoundError as error:
        raise ModelFileNotFoundError(f"there is no model file {file}.") from error
    except ScriptError as error:
        raise ModelFileError(str(error)) from error.__cause__
    inputs = None if names is None else tuple(map(TensorSpec, names))
    return Description(path=file, kind="script", inputs=inputs)
