# SPDX-License-Identifier: MIT
"""Time things side by side in one run: they take turns, so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

__all__ = ["Row", "take_turns"]


@dataclass(frozen=True)
class Row:
    """One line of a table: a measured time, and its ratio to the line it is compared with."""

    bench: str
    what: str
    seconds: float
    ratio: float | None = None
    bar: str = ""
    holds: bool | None = None


def take_turns(
    calls: Mapping[str, Callable[[], object]], rounds: int, each: int = 1
) -> dict[str, float]:
    """The median seconds of one call of each, over ``rounds`` rounds of ``each`` calls in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(max(2, each // 10)):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            _settle()
            start = time.perf_counter()
            for _ in range(each):
                call()
            _settle()
            times[name].append((time.perf_counter() - start) / each)
    return {name: statistics.median(values) for name, values in times.items()}


def _settle() -> None:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
