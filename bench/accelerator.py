# SPDX-License-Identifier: MIT
"""Rows from and to host memory through one accelerator, against plain eager PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import torchspan
from bench.measure import Row, take_turns
from bench.models import mlp, saved

__all__ = ["run"]

ROWS = 4_000_000


def run(folder: Path) -> list[Row]:
    """Measure four million rows through the MLP, with ordinary and with registered arrays."""
    if not torch.accelerator.is_available():
        return []
    kind = torch.accelerator.current_accelerator().type
    module = mlp().to(kind)
    path = saved(folder, mlp(), 64, kind)
    x = np.random.default_rng(0).random((ROWS, 64), dtype=np.float32)
    out, locked_x, locked_out = np.empty_like(x), x.copy(), np.empty_like(x)
    plain_x, plain_out = torch.from_numpy(x), torch.from_numpy(out)
    there = plain_x.to(kind)
    pinned, back = plain_x.pin_memory(), torch.empty_like(plain_x).pin_memory()
    with torchspan.load(path, devices=f"{kind}:0") as net, torch.no_grad():
        torchspan.register(locked_x)
        torchspan.register(locked_out)
        times = take_turns(
            {
                "eager out.copy_(net(x.cuda()))": lambda: plain_out.copy_(module(plain_x.to(kind))),
                "eager net(x.cuda()).cpu()": lambda: module(plain_x.to(kind)).cpu(),
                "torchspan, ordinary arrays": lambda: net(x, out=out),
                "torchspan, registered arrays": lambda: net(locked_x, out=locked_out),
                "copy in alone": lambda: there.copy_(pinned, non_blocking=True),
                "copy out alone": lambda: back.copy_(there, non_blocking=True),
                "compute alone": lambda: net(there),
            },
            rounds=7,
        )
        wrong = float(np.abs(locked_out - out).max())
        eager = module(plain_x[:1000].to(kind)).cpu().numpy()
        off = float(np.abs(eager - out[:1000]).max())
        torchspan.unregister(locked_x)
        torchspan.unregister(locked_out)
    if wrong or off > 1e-4:
        raise SystemExit(f"registered and ordinary arrays differ by {wrong}, eager by {off}")
    return _rows(times, kind)


def _rows(times: dict[str, float], kind: str) -> list[Row]:
    base = times["eager out.copy_(net(x.cuda()))"]
    floor = max(times[name] for name in ("copy in alone", "copy out alone", "compute alone"))
    bars = {
        "torchspan, ordinary arrays": ("at most a third of the first", base / 3),
        "torchspan, registered arrays": ("at most 1.3x the largest part alone", 1.3 * floor),
    }
    rows = []
    for what, seconds in times.items():
        bar, most = bars.get(what, ("", None))
        holds = None if most is None else seconds <= most
        rows.append(Row(f"MLP, {ROWS} rows, {kind}", what, seconds, base / seconds, bar, holds))
    return rows
