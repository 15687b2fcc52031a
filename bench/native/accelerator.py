# SPDX-License-Identifier: MIT
"""``python -m bench native_accelerator``: a GPU from a compiled program, against its parts alone.

The bars in microseconds are for an H200; ratios to what copying and computing cost alone hold on
any GPU. Where there is none, nothing is measured.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

import torchspan
from bench.measure import Row
from bench.models import mlp

__all__ = ["run"]

HERE = Path(__file__).parent
NATIVE = Path(torchspan.__file__).parent / "native"
WIDTH = 64
LARGE = 4_000_000
SMALL = {1: 30.0, 64: 60.0, 4096: 140.0}
H200 = "NVIDIA H200"


def run(folder: Path) -> list[Row]:
    """Measure four million rows, and few; nothing where there is no GPU."""
    if not torch.cuda.is_available():
        return []
    program = _build(folder)
    path = folder / "mlp.pt2"
    torchspan.save(mlp(), path, torch.rand(2, WIDTH), devices=["cuda"])
    bars = torch.cuda.get_device_name(0).startswith(H200)
    rows = _large(_measure(program, path, LARGE, 9), bars)
    for batch, most in SMALL.items():
        times = _measure(program, path, batch, 1001)
        for name in ("ordinary", "registered", "there"):
            bar = f"at most {most:.0f} µs on an H200" if name == "ordinary" else ""
            holds = times[name] <= most if bars and bar else None
            bench = f"MLP from C, {batch} rows"
            rows.append(Row(bench, name, times[name] * 1e-6, None, bar, holds))
    return rows


def _large(times: dict[str, float], bars: bool) -> list[Row]:
    floor = max(times[name] for name in ("there", "copy_in", "copy_out"))
    rows = []
    for name, micros in times.items():
        bar, holds = "", None
        if name == "ordinary":
            bar, holds = "at most 45 ms on an H200", micros <= 45e3 if bars else None
        if name == "registered":
            bar, holds = "at most 1.2x the largest part alone", micros <= 1.2 * floor
        bench = f"MLP from C, {LARGE} rows"
        rows.append(Row(bench, name, micros * 1e-6, micros / floor, bar, holds))
    return rows


def _build(folder: Path) -> Path:
    build = folder / "library"
    _call("cmake", "-S", NATIVE, "-B", build, f"-DTORCHSPAN_PYTHON={sys.executable}")
    _call("cmake", "--build", build, "--target", "torchspan", "--parallel", "2")
    _call(
        *("cc", "-std=gnu11", "-O2", f"-I{NATIVE / 'include'}"),
        *(f"-I{HERE.parents[1] / 'tests' / 'native' / 'programs'}", HERE / "accelerator.c"),
        *("-o", folder / "accelerator", f"-L{build}", "-ltorchspan", f"-Wl,-rpath,{build}"),
        *("-Wl,--allow-shlib-undefined", "-ldl", "-lm"),
    )
    return folder / "accelerator"


def _measure(program: Path, path: Path, rows: int, rounds: int) -> dict[str, float]:
    lines = _call(program, path, "cuda:0", WIDTH, rows, rounds).splitlines()
    return {name: float(micros) for name, micros in map(str.split, lines)}


def _call(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout
