# SPDX-License-Identifier: MIT
"""A lock file: one process at a time, told apart from what a killed one left.

The kernel lets go of the lock when its holder dies, however it dies; what stays is an empty file,
which the next holder takes over and removes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock file ``path`` and remove it at the end; False where another one holds it.

    Raises:
        OSError: The file cannot be made, or its file system has no locks.
    """
    while True:
        handle = _open(path)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            except OSError:
                path.unlink(missing_ok=True)
                raise
            if _still_there(handle, path):
                try:
                    yield True
                finally:
                    path.unlink(missing_ok=True)
                return
            # Its last holder removed the file between our opening and our locking it.
        finally:
            os.close(handle)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError:
        # Another user's, in a folder that both may write to.
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _still_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
