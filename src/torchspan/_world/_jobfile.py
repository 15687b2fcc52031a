# SPDX-License-Identifier: MIT
"""A file by which the ranks of one job on one host find rank 0.

Rank 0 writes the file whole and locked, and removes it once all have joined. The kernel lets go of
the lock with rank 0's process, so a file without a lock is a leftover, whoever left it. Its name
holds the user, the launcher's name for the job and the process that launched it, so that two jobs
at once never meet.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchspan._errors import RankError
from torchspan._placement import Placement, read_launchers
from torchspan._world._spoke import Endpoint

__all__ = ["JobFile", "find_launching_process"]

_FOLDERS = ("/dev/shm", "/tmp")
_PROCESSES = Path("/proc")
_LONG_SECONDS = 3600.0


class JobFile:
    """The file of one job.

    Args:
        placement: Who this process is.
        meeting: How many times the ranks have met before: programs may join more than once.
        folder: Where the file goes; by default a folder that all processes of the host share.
    """

    def __init__(self, placement: Placement, meeting: int, folder: Path | None = None) -> None:
        self._placement = placement
        launching = find_launching_process(placement)
        key = (placement.launcher, placement.job, placement.size, launching, meeting)
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
        self.path = (folder or _shared_folder()) / f"torchspan-{os.getuid()}-{digest}"
        self._descriptor: int | None = None

    def write(self, endpoint: Endpoint) -> None:
        """Say where rank 0 listens; replaces a leftover.

        Raises:
            RankError: Somebody else owns a file of this name.
        """
        self._sweep()
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        self._descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.write(self._descriptor, json.dumps(asdict(endpoint)).encode())
        try:
            draft.rename(self.path)
        except PermissionError as error:
            draft.unlink()
            os.close(self._descriptor)
            self._descriptor = None
            raise RankError(
                f"{self.path} belongs to somebody else. Remove it, or set MASTER_ADDR and "
                "MASTER_PORT."
            ) from error

    def remove(self) -> None:
        """Remove what ``write`` wrote."""
        if self._descriptor is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), self.path.stat()):
                    self.path.unlink()
            os.close(self._descriptor)
            self._descriptor = None

    def read(self, deadline: float) -> Endpoint:
        """Wait for rank 0's file.

        Args:
            deadline: The time (``time.monotonic``) until which to wait.

        Raises:
            RankError: It did not come in time.
        """
        pause = 0.01
        while True:
            found = self._read_once()
            if found is not None:
                return Endpoint(tuple(found["addresses"]), tuple(found["ports"]), found["token"])
            if time.monotonic() > deadline:
                place = self._placement
                raise RankError(
                    f"rank {place.rank} of {place.size} waited in vain for rank 0 to write "
                    f"{self.path}. Look at what rank 0 printed. Where each rank runs in a "
                    "container of its own, set MASTER_ADDR and MASTER_PORT instead."
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.2)

    def _sweep(self) -> None:
        """Remove what killed runs of this user left here long ago."""
        for path in self.path.parent.glob(f"torchspan-{os.getuid()}-*"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_uid == os.getuid() and time.time() - status.st_mtime > _LONG_SECONDS:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    path.unlink()

    def _read_once(self) -> dict[str, Any] | None:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            if os.fstat(descriptor).st_uid != os.getuid():
                return None
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            found: dict[str, Any] = json.loads(os.read(descriptor, 1 << 16))
            return found
        finally:
            os.close(descriptor)
        return None


def find_launching_process(placement: Placement) -> str | None:
    """The process that launched this rank, as its number and start time.

    The nearest ancestor that shows that it is no rank itself: a rank's command may be a shell that
    starts Python in turn, or a container's starter, which shows nothing. None where the system
    does not tell.
    """
    row = next((row for row in read_launchers() if row["name"] == placement.launcher), None)
    marks = [] if row is None else [f"{name}=".encode() for name in row["rank"]]
    process, found = os.getppid(), None
    while process > 0:
        status = _stat(process)
        if not status:
            break
        found = f"{process}.{status[19]}"
        try:
            environ = (_PROCESSES / str(process) / "environ").read_bytes().split(b"\0")
        except OSError:
            environ = marks
        if not any(entry.startswith(mark) for entry in environ for mark in marks):
            break
        process = int(status[1])
    return found


def _stat(process: int) -> list[str]:
    try:
        text = (_PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The process's name stands in brackets and may hold spaces and brackets itself.
    return text.rpartition(")")[2].split()


def _shared_folder() -> Path:
    for name in _FOLDERS:
        if os.access(name, os.W_OK | os.X_OK):
            return Path(name)
    return Path(tempfile.gettempdir())
