# SPDX-License-Identifier: MIT
"""Ends this rank when another fails, and tells the others when this one does.

A Python exception can be raised in the main thread from outside only by a signal's handler. SIGTERM
is the signal used, because it is also what launchers send to the other ranks when one ends badly:
one handler serves both, and turns either into that rank's error.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import torch.distributed as dist

from torchspan._errors import RankError, TorchspanError
from torchspan._log import log
from torchspan._world._failure import Failure
from torchspan._world._line import Line

__all__ = ["Guard"]

FAREWELL_SECONDS = 5.0
PATIENCE_SECONDS = 20.0

_GRACE_SECONDS = 0.5
_AFTERMATH_SECONDS = 5.0
_COMMUNICATION = re.compile(
    r"\b(gloo|nccl|xccl|c10d|TCPStore)\b|broken pipe|connection (closed|reset|refused|was)",
    re.IGNORECASE,
)
_armed: weakref.WeakSet[Guard] = weakref.WeakSet()


class Guard:
    """Watches one line.

    Args:
        line: The line to the other ranks.
        free: Frees a main thread that is blocked in a collective operation.
        close: Leaves the world in order, when the process ends without having done so.

    Attributes:
        close: As given; the world puts itself in its place.
        last_words: Called before a signal ends this process, for what must not be left behind.
    """

    def __init__(self, line: Line, free: Callable[[], None], close: Callable[[], None]) -> None:
        self.line = line
        self._free = free
        self.close = close
        self.last_words: Callable[[], None] = lambda: None
        self._pid = os.getpid()
        self._delivered = threading.Event()
        self._delivered_at = 0.0
        self._handling = threading.Lock()
        self._failing = False
        self._poked = False
        self._exiting = False
        self._told: RankError | None = None
        self._previous_handler: Any = None
        self._previous_hook = sys.excepthook

    @property
    def exiting(self) -> bool:
        """Whether this rank's process is on its way out."""
        return self._exiting

    @property
    def ended(self) -> bool:
        """Whether this rank has ended, by its own error or another's."""
        return self._delivered.is_set()

    def arm(self) -> None:
        """Begin: from now on a failure of another rank ends this one, and the reverse."""
        _armed.add(self)
        if threading.current_thread() is threading.main_thread():
            previous = _before_guards(signal.getsignal(signal.SIGTERM))
            if previous is None:
                log.info("SIGTERM is handled by native code; left as it is")
            else:
                self._previous_handler = previous
                signal.signal(signal.SIGTERM, self._on_signal)
        atexit.register(self._at_exit)
        self.line.on_failure = self._on_failure
        if self.line.failure is not None:
            self._on_failure(self.line.failure)

    def watch_unhandled(self) -> None:
        """Take exceptions that nobody handles; after torch.distributed, which takes them too."""
        self._previous_hook = _before_guards(sys.excepthook)
        sys.excepthook = self._on_unhandled

    def disarm(self) -> None:
        """End, after this rank has left in order."""
        self._delivered.set()
        _armed.discard(self)
        atexit.unregister(self._at_exit)
        if sys.excepthook == self._on_unhandled:
            sys.excepthook = self._previous_hook
        self._restore_handler()

    def check(self) -> None:
        """Raise the error of another rank where one is known.

        Raises:
            RankError: Another rank failed.
        """
        failure = self.line.failure
        if failure is not None and not self._failing:
            raise self._deliver(failure)

    def explain(self, exception: BaseException) -> BaseException:
        """The error of another rank where it is the reason for ``exception``, else itself."""
        if isinstance(exception, TorchspanError) or not _is_communication(exception):
            return exception
        # A killed rank is known of within milliseconds, one that left only to who asks.
        for seconds in (0.2, 1.0):
            failure = self.line.wait_failure(seconds)
            if failure is not None and not self._failing:
                return self._deliver(failure)
            left = sorted(self.line.ranks_that_left(1.0))
            if left:
                return RankError(
                    f"{_name_ranks(left)} had left the world while this rank still waited in a "
                    "collective operation. Every rank must take part in each of them, as often "
                    "and in the same order."
                )
        return exception

    def fail_unless_others(self, exception: BaseException) -> None:
        """Tell the others that ``exception`` ends this rank, unless it is another rank's error."""
        self._delivered.set()
        if self._is_others(exception) or self._failing:
            return
        self._failing = True
        self.line.report(Failure.of(self.line.rank, exception))
        self._free()

    def raise_reason(self, exception: BaseException) -> None:
        """End this rank for ``exception``: raise the other rank's error that is the reason for it.

        Returns, so that the caller raises ``exception`` itself, where there is none.
        """
        reason = self.explain(exception)
        self.fail_unless_others(reason)
        if reason is not exception:
            raise reason from exception

    def _deliver(self, failure: Failure) -> RankError:
        self._delivered_at = time.monotonic()
        self._delivered.set()
        return failure.error()

    def _on_failure(self, failure: Failure) -> None:
        if not self._failing:
            threading.Thread(
                target=self._end_this_rank, args=(failure,), name="torchspan-guard", daemon=True
            ).start()

    def _end_this_rank(self, failure: Failure) -> None:
        log.info("%s; ending this rank too", failure.describe())
        with self._handling:
            # Not once the handler is gone: the signal would end the process.
            if signal.getsignal(signal.SIGTERM) == self._on_signal:
                self._poked = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        self._free()
        if not self._delivered.wait(PATIENCE_SECONDS):
            self._end_process(failure)

    def _end_process(self, failure: Failure) -> None:
        """The last resort: see the package's docstring for why a library may do this here."""
        text = (
            f"torchspan: rank {self.line.rank}: RankError: {failure.describe()}. This rank was "
            f"inside one call that nothing could interrupt for {PATIENCE_SECONDS:g} s, so its "
            "process ends here.\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, text.encode())
        os._exit(1)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            self._pass_on(number, frame)
            return
        poked, self._poked = self._poked, False
        failure = self.line.failure if poked else self.line.wait_failure(_GRACE_SECONDS)
        told = failure is not None and (poked or failure.kind != "terminated")
        if told and failure is not None and not (self._exiting or self._delivered.is_set()):
            raise self._deliver(failure)
        recent = time.monotonic() - self._delivered_at < _AFTERMATH_SECONDS
        # A launcher reacts to the failure that this rank is already ending with.
        if told and (poked or recent):
            return
        ended = [
            rank for rank, ending in self.line.ranks_that_left(_GRACE_SECONDS).items() if ending
        ]
        if failure is None and ended and not self._exiting:
            self._told = RankError(
                f"{_name_ranks(ended)} had ended before this rank was done, and then the launcher "
                "or the batch system stopped this one (SIGTERM)."
            )
            raise self._told
        self._pass_on(number, frame)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        previous = self._previous_handler
        if callable(previous):
            previous(number, frame)
        elif previous != signal.SIG_IGN:
            if os.getpid() == self._pid and self.line.failure is None:
                self._failing = True
                self.line.report(Failure(self.line.rank, "terminated"))
                self.last_words()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _restore_handler(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        with self._handling:
            if main and signal.getsignal(signal.SIGTERM) == self._on_signal:
                signal.signal(signal.SIGTERM, self._previous_handler)

    def _on_unhandled(
        self, kind: type[BaseException], exception: BaseException, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:
            self._previous_hook(kind, exception, trace)
            return
        self._exiting = True
        reason = self.explain(exception)
        self.fail_unless_others(reason)
        if isinstance(reason, KeyboardInterrupt):
            # Ctrl-C reaches every rank: one line says it for all.
            if self.line.failure is None or self.line.failure.rank == self.line.rank:
                self._say("interrupted")
        elif reason is self._told or self._is_others(reason):
            # Where this rank happened to be says nothing about what the other one did.
            self._say(f"RankError: {reason}")
            log.debug("it was here", exc_info=(kind, exception, trace))
        else:
            if reason is not exception:
                reason.__cause__ = exception
            self._previous_hook(type(reason), reason, trace)

    def _is_others(self, exception: BaseException) -> bool:
        failure = self.line.failure
        others = failure is not None and failure.rank != self.line.rank
        return others and isinstance(exception, RankError)

    def _say(self, text: str) -> None:
        print(f"torchspan: rank {self.line.rank}: {text}", file=sys.stderr, flush=True)

    def _at_exit(self) -> None:
        if os.getpid() != self._pid:
            return
        self._exiting = True
        try:
            self.close()
        except RankError as error:
            self._say(f"RankError: {error}")
        if self.line.failure is None:
            return
        self._delivered.set()
        self._delivered_at = 0.0
        # The line is left to the kernel to close, so that the others see this process end.
        self.line.farewell(FAREWELL_SECONDS)

    def forget_in_child(self) -> None:
        """In a forked process: this is no rank."""
        self.line.abandon()
        if signal.getsignal(signal.SIGTERM) == self._on_signal:
            signal.signal(signal.SIGTERM, self._previous_handler)


def _before_guards(handler: Any) -> Any:
    """What stood there before the guards of worlds that failed, which stay until the end."""
    while isinstance(guard := getattr(handler, "__self__", None), Guard):
        signals = handler == guard._on_signal
        handler = guard._previous_handler if signals else guard._previous_hook
    return handler


def _name_ranks(ranks: list[int]) -> str:
    more = ", ..." if len(ranks) > 20 else ""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks[:20]))}{more}"


def _is_communication(exception: BaseException) -> bool:
    if isinstance(exception, dist.DistError | ConnectionError):
        return True
    return isinstance(exception, RuntimeError) and bool(_COMMUNICATION.search(str(exception)))


def _forget_in_child() -> None:
    for guard in list(_armed):
        guard.forget_in_child()


os.register_at_fork(after_in_child=_forget_in_child)
