# SPDX-License-Identifier: MIT
"""What a call from Python costs, above calling the same build directly."""

from __future__ import annotations

from pathlib import Path

import torch

import torchspan
from bench.measure import Row, take_turns
from bench.models import linear, mlp, saved

__all__ = ["run"]

MOST = 15e-6


def run(folder: Path) -> list[Row]:
    """Measure one row through the linear model and the MLP, on one device."""
    return [
        *_measure("linear 5-5", saved(folder, linear(), 5, tuned=False), 5),
        *_measure("MLP 64-256-256-64", saved(folder, mlp(), 64, tuned=False), 64),
    ]


def _measure(name: str, path: Path, width: int) -> list[Row]:
    x = torch.rand(1, width)
    direct = torch._C._aoti.AOTIModelPackageLoader(str(path), "model", False, 1, -1)
    package = torch._inductor.aoti_load_package(str(path))
    with torchspan.load(path, devices="cpu") as net, torch.no_grad():
        times = take_turns(
            {
                "loader.boxed_run([x])": lambda: direct.boxed_run([x]),
                "aoti_load_package(path)(x)": lambda: package(x),
                "torchspan net(x)": lambda: net(x),
            },
            rounds=15,
            each=2000,
        )
    base = times["loader.boxed_run([x])"]
    rows = []
    for what, seconds in times.items():
        ours = what.startswith("torchspan")
        bar = f"at most {MOST * 1e6:.0f} µs above the first" if ours else ""
        holds = seconds - base <= MOST if ours else None
        rows.append(Row(f"call, {name}, batch 1", what, seconds, seconds / base, bar, holds))
    return rows
