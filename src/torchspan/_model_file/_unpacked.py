# SPDX-License-Identifier: MIT
"""A build's folder on this machine: unpacked from its file, or compiled here and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import torch

from torchspan._aoti import OPENED
from torchspan._errors import ModelFileError
from torchspan._log import log, notice, timed
from torchspan._model_file._archive import Archive, digest_files
from torchspan._model_file._cache import keep_entry
from torchspan._model_file._compile import build_checked
from torchspan._model_file._description import Build, Description
from torchspan._model_file._stored import read_stored
from torchspan._model_file._target import Target

__all__ = ["compile_here", "unpack_build"]

_STATED = "build.json"


def unpack_build(archive: Archive, build: Build) -> Path:
    """The folder that ``build`` is unpacked in, on this machine, once for all its processes.

    Raises:
        ModelFileError: The file is damaged, or the cache cannot be written.
    """
    sizes = archive.sizes(build.folder)

    def fill(folder: Path) -> None:
        opened = folder / OPENED
        opened.mkdir(parents=True)
        archive.unpack(build.folder, opened)
        if digest_files(list(opened.iterdir())) != build.digest:
            raise ModelFileError(
                f"{archive.path} is damaged: the files of its build {build.name} are not those "
                "that were saved. Copy the file again, or save the model again."
            )

    def whole(folder: Path) -> bool:
        opened = folder / OPENED
        return opened.is_dir() and sizes == {
            each.name: each.stat().st_size for each in opened.iterdir()
        }

    with timed("opened build %s of %s", build.name, archive.path):
        return keep_entry(build.digest, fill, whole)


def compile_here(path: Path, description: Description, target: Target) -> tuple[Path, Build]:
    """Compile a file's program for ``target`` and keep the build for this machine's next process.

    Returns:
        The folder that the build lies in, and what it is.

    Raises:
        BuildError: The compiler failed or is missing, or the build gives wrong results.
        ModelFileError: The file holds no program, or the cache cannot be written.
    """

    def fill(folder: Path) -> None:
        notice(
            f"{path} holds no build {target.name}; compiling one, which is kept for the next "
            f"time. To put it into the file: torchspan compile {path.name} --device {target.kind}"
            + (f" --precision {target.precision}" if target.precision != "float32" else "")
        )
        program, _, shown = read_stored(path, description)
        built = build_checked(program, shown, target, progress=log.info)
        opened = folder / OPENED
        opened.mkdir(parents=True)
        for file in built.files:
            shutil.copyfile(file, opened / file.name)
        (folder / _STATED).write_text(json.dumps(asdict(built.build)), encoding="utf-8")

    def whole(folder: Path) -> bool:
        return (folder / _STATED).is_file()

    entry = keep_entry(_identify(path, target), fill, whole)
    return entry, Build(**json.loads((entry / _STATED).read_text(encoding="utf-8")))


def _identify(path: Path, target: Target) -> str:
    """Name what is compiled from what: program and weights, for a target, by this torch."""
    with Archive(path) as archive:
        records = archive.program_sums()
    text = json.dumps([records, target.name, target.capability, torch.__version__])
    return hashlib.sha256(text.encode()).hexdigest()
