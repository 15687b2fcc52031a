# SPDX-License-Identifier: MIT
"""Builds unpacked once per machine, shared by all its processes.

An entry is a folder named by the digest of what it holds. It is filled beside its final name under
a lock and then renamed, so an entry that is there is whole. A process that is killed loses its
lock with its life; the next one that takes the lock clears what was left.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torchspan._errors import ModelFileError
from torchspan._log import log
from torchspan._model_file._lock import locked

__all__ = ["cache_folder", "keep_entry"]

UNUSED_DAYS = 30

_PARTIAL = ".partial"
_LOCK = ".lock"


def cache_folder() -> Path:
    """The folder of this user's unpacked builds: ``$TORCHSPAN_CACHE``, else a temporary one.

    Raises:
        ModelFileError: The folder cannot be made, or belongs to somebody else.
    """
    named = os.environ.get("TORCHSPAN_CACHE")
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"torchspan-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise ModelFileError(
            f"the cache folder {folder} cannot be made: {error.strerror}. Name another one in "
            "TORCHSPAN_CACHE."
        ) from error
    # A build is machine code: a folder that others may write to would let them run theirs.
    if found.st_uid not in (os.getuid(), 0) or found.st_mode & 0o022:
        raise ModelFileError(
            f"the cache folder {folder} belongs to, or may be written by, another user. Name "
            "another one in TORCHSPAN_CACHE, or 'chmod go-w' it."
        )
    return folder


def keep_entry(digest: str, fill: Callable[[Path], None], whole: Callable[[Path], bool]) -> Path:
    """The folder of the entry ``digest``, filled first by ``fill`` where it is not there.

    Args:
        digest: Names the entry.
        fill: Called at most once on this machine, with an empty folder to fill.
        whole: Tells whether an entry that is there is as it was filled.

    Raises:
        ModelFileError: The cache cannot be written, or ``fill`` found the file damaged.
    """
    folder = cache_folder()
    entry = folder / digest
    if not (entry.is_dir() and whole(entry)):
        try:
            with locked(folder / f"{digest}{_LOCK}"):
                if not (entry.is_dir() and whole(entry)):
                    _fill(folder, entry, fill)
        except OSError as error:
            raise ModelFileError(
                f"the cache folder {folder} cannot be written: {error.strerror or error}. Free "
                "some space, or name another one in TORCHSPAN_CACHE."
            ) from error
    _touch(entry)
    return entry


def _fill(folder: Path, entry: Path, fill: Callable[[Path], None]) -> None:
    _clean(folder)
    partial = entry.with_name(entry.name + _PARTIAL)
    for left in (partial, entry):
        shutil.rmtree(left, ignore_errors=True)
    partial.mkdir(mode=0o700)
    try:
        fill(partial)
        partial.rename(entry)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    log.debug("cached a build in %s", entry)


def _clean(folder: Path) -> None:
    """Remove what killed processes left, and entries that nobody has used for a long time."""
    oldest = time.time() - UNUSED_DAYS * 86400
    for path in folder.iterdir():
        stem = path.name.removesuffix(_PARTIAL).removesuffix(_LOCK)
        try:
            if path.name == stem and path.stat().st_mtime > oldest:
                continue
        except FileNotFoundError:
            continue
        # Taking a dead process's lock file removes it, too.
        with locked(folder / f"{stem}{_LOCK}", wait=False) as mine:
            if mine and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)


def _touch(entry: Path) -> None:
    try:
        os.utime(entry)
    except OSError as error:
        log.debug("cannot note the use of %s: %s", entry, error)
