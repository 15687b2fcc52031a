# SPDX-License-Identifier: MIT
"""Which blocks of rows of a run are done, kept beside its output.

One line of JSON says what the run is: its inputs, its model, its outputs. Then comes one byte a
block, ``.`` until the block's rows are on the disk and ``#`` from then on. Ranks write bytes of
their own and never change one back, so any number of ranks may go on with it; a mark that is lost
costs one block of work, and no mark is ever early.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from torchspan._errors import ArgumentError
from torchspan._log import log

__all__ = ["Journal", "identify"]

_FORMAT = 1
_TODO, _DONE = b".", b"#"


def identify(path: Path) -> dict[str, int]:
    """What tells a file from a changed one: its size and its time of change."""
    found = path.stat()
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}


class Journal:
    """The journal of one run, opened to read and to write marks.

    Attributes:
        path: The file.
        run: What the run is; None in a journal that was only just made.
        blocks: How many blocks there are.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        self.run: dict[str, Any] | None = None
        self.blocks = 0
        self._offset = 0
        # With O_DSYNC a mark is on the disk when its write returns.
        flags = os.O_RDWR | os.O_DSYNC | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self._file = os.open(path, flags, 0o666)

    def lock(self) -> None:
        """Keep other runs away from this output for as long as this process lives.

        Raises:
            ArgumentError: Another run holds it.
        """
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArgumentError(
                f"another run is writing this output: it holds {self.path}. Wait for it, end it, "
                "or name another output."
            ) from error
        except OSError as error:
            # Some parallel file systems have no locks; the lock only guards against a mistake.
            log.info("%s cannot be locked: %s", self.path, error.strerror)

    def read(self) -> None:
        """Read what the run is.

        Raises:
            ArgumentError: The file is no journal.
        """
        line, _, marks = self.path.read_bytes().partition(b"\n")
        if not line and not marks:
            return
        try:
            values = json.loads(line)
            known = (values["torchspan-run"], values["blocks"]) == (_FORMAT, len(marks))
            run = dict(values["run"])
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise ArgumentError(
                f"{self.path} is no journal that this torchspan can read. Start over with "
                "--restart, or name another output."
            )
        self.run, self.blocks, self._offset = run, len(marks), len(line) + 1

    def begin(self, run: dict[str, Any], blocks: int) -> None:
        """Write what the run is, with nothing done.

        Args:
            run: What the run is, JSON-safe.
            blocks: How many blocks it has.
        """
        line = json.dumps({"torchspan-run": _FORMAT, "blocks": blocks, "run": run}).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, line + b"\n" + _TODO * blocks, 0)
        self.run, self.blocks, self._offset = run, blocks, len(line) + 1

    def todo(self) -> list[int]:
        """The blocks that are not done."""
        marks = os.pread(self._file, self.blocks, self._offset)
        return [block for block in range(self.blocks) if marks[block : block + 1] != _DONE]

    def mark(self, first: int, count: int) -> None:
        """Say that ``count`` blocks from ``first`` on are done: their rows are on the disk."""
        os.pwrite(self._file, _DONE * count, self._offset + first)

    def close(self) -> None:
        """Close the file and let go of its lock; one that was never begun is removed."""
        if self._file >= 0:
            if os.fstat(self._file).st_size == 0:
                self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        """Remove the file: the run is finished."""
        self.path.unlink(missing_ok=True)
        self.close()
