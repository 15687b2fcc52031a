# SPDX-License-Identifier: MIT
"""The line between the ranks: who joined, what was decided, who failed, who left.

Every rank keeps one TCP connection to rank 0, the hub. The kernel closes it with its process, so
the hub learns of a killed rank at once, and every rank learns of a killed rank 0. Nothing is sent
while all is well.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from torchspan._world._failure import Failure
from torchspan._world._wire import Message

__all__ = ["Decide", "Line"]

_AFTER_YOU_SECONDS = 0.3

Decide = Callable[[list[Message]], Message]


class Line(ABC):
    """What a rank knows of the others, kept up to date by a thread of its own.

    Attributes:
        rank: This rank.
        failure: The first failure of any rank that became known; the same on every rank.
        on_failure: Called once, in the line's thread, when a failure becomes known; must be quick.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.failure: Failure | None = None
        self.on_failure: Callable[[Failure], None] | None = None
        self._changed = threading.Condition()
        self._left: dict[int, bool] = {}
        self._over = False

    @abstractmethod
    def meet(self, facts: Message, decide: Decide, deadline: float) -> Message:
        """Give this rank's facts, and get what rank 0 made of everybody's by ``decide``."""

    @abstractmethod
    def report(self, failure: Failure) -> None:
        """Tell every rank that this one failed; the first failure of all wins."""

    @abstractmethod
    def leave(self, *, ending: bool) -> None:
        """Tell the others that this rank's work is done; rank 0 waits until all have left.

        Args:
            ending: Whether it leaves because its process ends, perhaps with an exit status that
                Python does not tell.

        Raises:
            RankError: Another rank failed while rank 0 waited.
        """

    @abstractmethod
    def ranks_that_left(self, seconds: float) -> dict[int, bool]:
        """Which other ranks have left, and whether their process was ending.

        Waits at most ``seconds`` for the answer.
        """

    @abstractmethod
    def farewell(self, seconds: float) -> None:
        """After a failure, wait until every rank has said its last word, at most ``seconds``.

        A launcher kills the other ranks as soon as one ends badly; this gives all of them the time
        to show what went wrong. The rank that failed ends first, so that its exit status is the
        one that the launcher takes for the job's.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections and end the thread."""

    @abstractmethod
    def abandon(self) -> None:
        """In a forked process: let go of the connections without a word."""

    def wait_failure(self, seconds: float) -> Failure | None:
        """The failure that is known, or becomes known within ``seconds``."""
        with self._changed:
            self._changed.wait_for(lambda: self.failure is not None, seconds)
        return self.failure

    def let_pass(self) -> None:
        """Let the rank that failed end a moment before this one."""
        if self.failure is not None and self.failure.rank != self.rank:
            time.sleep(_AFTER_YOU_SECONDS)

    def _learn(self, failure: Failure) -> bool:
        with self._changed:
            if self.failure is not None:
                return False
            self.failure = failure
            self._changed.notify_all()
        if self.on_failure is not None:
            self.on_failure(failure)
        return True

    def _wait(self, condition: Callable[[], bool], deadline: float | None) -> bool:
        """Wait for ``condition`` until ``deadline``; a failure of another rank raises."""
        with self._changed:
            left = None if deadline is None else deadline - time.monotonic()
            self._changed.wait_for(lambda: self.failure is not None or condition(), left)
            if self.failure is not None:
                raise self.failure.error()
            return condition()
