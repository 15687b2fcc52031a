# SPDX-License-Identifier: MIT
"""What ``TORCHSPAN_LOG=info|debug`` says on stderr.

An ordinary ``logging`` logger named ``torchspan``, so that a program with its own logging set-up
sees the same lines; the variable only adds a handler and a level. ``notice`` is for the few things
that a user must see once even when no logging was asked for.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["log", "notice", "timed"]

log = logging.getLogger("torchspan")

_LEVELS = {"info": logging.INFO, "debug": logging.DEBUG, "off": logging.CRITICAL}
# Innermost launcher first, as in launchers.json, which is read too late for this.
_RANKS = (
    *("RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID"),
    *("JSM_NAMESPACE_RANK", "FLUX_TASK_RANK", "PMIX_RANK", "SLURM_PROCID"),
)
_said: set[str] = set()
_said_lock = threading.Lock()


def notice(text: str) -> None:
    """Say ``text`` on stderr, once in the life of this process."""
    with _said_lock:
        if text in _said:
            return
        _said.add(text)
    print(f"torchspan: {text}", file=sys.stderr, flush=True)


@contextmanager
def timed(what: str, *arguments: object) -> Iterator[None]:
    """Log ``what % arguments`` with the time that the body took, at level info."""
    if not log.isEnabledFor(logging.INFO):
        yield
        return
    start = time.perf_counter()
    yield
    log.info("%s (%.1f ms)", what % arguments, (time.perf_counter() - start) * 1e3)


def _configure() -> None:
    text = os.environ.get("TORCHSPAN_LOG", "").strip().lower()
    if not text:
        return
    level = _LEVELS.get(text)
    if level is None:
        notice(f"TORCHSPAN_LOG={text!r} is not one of {', '.join(_LEVELS)}; logging stays off.")
        return
    handler = logging.StreamHandler()
    rank = next((os.environ[name] for name in _RANKS if name in os.environ), None)
    where = "" if rank is None else f" rank {rank}"
    handler.setFormatter(logging.Formatter(f"torchspan{where} %(relativeCreated)d ms: %(message)s"))
    log.addHandler(handler)
    log.setLevel(level)
    log.propagate = False


_configure()
