# SPDX-License-Identifier: MIT
"""What one rank tells the others when it ends before its work is done."""

from __future__ import annotations

from dataclasses import dataclass

from torchspan._errors import RankError

__all__ = ["Failure"]

LONGEST_TEXT = 4000


@dataclass(frozen=True)
class Failure:
    """How a rank failed.

    Attributes:
        rank: The rank that failed.
        kind: ``"raised"``, ``"exited"``, ``"interrupted"``, ``"terminated"`` or ``"gone"``.
        text: The exception as ``"ValueError: its message"``, the exit status, or who went away.
    """

    rank: int
    kind: str
    text: str = ""

    @classmethod
    def of(cls, rank: int, exception: BaseException) -> Failure:
        """The failure of ``rank`` that ``exception``, leaving it, stands for."""
        if isinstance(exception, KeyboardInterrupt):
            return cls(rank, "interrupted")
        if isinstance(exception, SystemExit):
            return cls(rank, "exited", str(exception.code)[:LONGEST_TEXT])
        message = str(exception)
        name = type(exception).__name__
        return cls(rank, "raised", (f"{name}: {message}" if message else name)[:LONGEST_TEXT])

    def error(self) -> RankError:
        """The error that the other ranks end with."""
        return RankError(self.describe())

    def describe(self) -> str:
        """One sentence that names the rank and what happened to it."""
        who = f"rank {self.rank}"
        if self.kind == "exited":
            return f"{who} ended with exit status {self.text}"
        if self.kind == "interrupted":
            return f"{who} was interrupted (Ctrl-C)"
        if self.kind == "terminated":
            return f"{who} was ended by SIGTERM: its launcher or batch system stopped it"
        if self.kind == "gone":
            return (
                f"{who}{self.text} went away without a word: it was killed, it crashed, or its "
                "host cannot be reached. Look at its own output, and on its host for a process "
                "killed for lack of memory"
            )
        return f"{who} failed with {self.text}"
