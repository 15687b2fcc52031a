# SPDX-License-Identifier: MIT
"""What a second virtual CPU gains on two cores."""

from __future__ import annotations

from pathlib import Path

import torch

import torchspan
from bench.measure import Row, take_turns
from bench.models import mlp, saved
from torchspan._devices import usable_cores

__all__ = ["run"]

ROWS = 65536
LEAST = 1.7


def run(folder: Path) -> list[Row]:
    """Measure one virtual device on one core, two on two, and eager PyTorch on both ways."""
    if usable_cores() < 2:
        return []
    module = mlp()
    path = saved(folder, module, 64)
    x, out = torch.rand(ROWS, 64), torch.empty(ROWS, 64)
    threads = torch.get_num_threads()

    def on_one_core(call):
        def limited():
            torch.set_num_threads(1)
            call()
            torch.set_num_threads(threads)

        return limited

    one = torchspan.load(path, devices="cpu")
    two = torchspan.load(path, devices="cpu:0,cpu:1")
    with one, two, torch.no_grad():
        times = take_turns(
            {
                "torchspan cpu:0 on one core": on_one_core(lambda: one(x, out=out)),
                "torchspan cpu:0,cpu:1": lambda: two(x, out=out),
                "torchspan cpu on all cores": lambda: one(x, out=out),
                "eager PyTorch on one core": on_one_core(lambda: out.copy_(module(x))),
                "eager PyTorch on all cores": lambda: out.copy_(module(x)),
            },
            rounds=9,
        )
    base = times["torchspan cpu:0 on one core"]
    rows = []
    for what, seconds in times.items():
        ours = what == "torchspan cpu:0,cpu:1"
        bar = f"at least {LEAST}x the first" if ours else ""
        holds = base / seconds >= LEAST if ours else None
        rows.append(Row(f"MLP, batch {ROWS}", what, seconds, base / seconds, bar, holds))
    return rows
