# SPDX-License-Identifier: MIT
"""``python -m bench ftorch``: a Fortran program through FTorch's interface and through torchspan's.

Both call one model in one process, in turn, on one thread; the tensors are made once. Then a tensor
is made over an array and deleted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import torchspan
from bench.measure import Row
from bench.models import linear, mlp

__all__ = ["run"]

HERE = Path(__file__).parent
ABOVE, TENSOR = 0.5, 0.7
CASES = (("linear 5-5", linear, 5), ("MLP", mlp, 64))


def run(folder: Path) -> list[Row]:
    """Install the libraries, build the program, measure."""
    if any(shutil.which(tool) is None for tool in ("gfortran", "pkg-config", "c++")):
        return []
    program = _build(folder)
    rows: list[Row] = []
    tensors: list[float] = []
    for name, make, width in CASES:
        for form in ("pt", "pt2"):
            path = folder / f"{name}.{form}"
            torchspan.save(make(), path, torch.rand(2, width))
            words = _call(program, path, width, environ={"OMP_NUM_THREADS": "1"}).split()
            own, front, tensor = map(float, words)
            tensors.append(tensor)
            bench = f"FTorch's interface, 1 thread: {name}, batch 1, .{form}"
            bar = f"at most {ABOVE} µs above"
            rows += [
                Row(bench, "call net%run(x, y)", own * 1e-6, 1.0),
                Row(bench, "call torch_model_forward", front * 1e-6, own / front, bar,
                    front <= own + ABOVE),
            ]  # fmt: skip
    slowest = max(tensors)
    bench = "FTorch's interface: a tensor over an array, made and deleted"
    bar = f"at most {TENSOR} µs"
    return [
        *rows,
        Row(bench, "the slowest of all runs", slowest * 1e-6, None, bar, slowest <= TENSOR),
    ]


def _build(folder: Path) -> Path:
    prefix = folder / "prefix"
    _call(sys.executable, "-m", "torchspan", "build", "--prefix", prefix, "--fc", "gfortran",
          "--with", "ftorch")  # fmt: skip
    packages = ("FTorch", "torchspan-fortran")
    where = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    words = _call("pkg-config", "--cflags", "--libs", *packages, environ=where).split()
    sources = (HERE / "timing.f90", HERE / "ftorch.f90")
    program = folder / "ftorch"
    _call("gfortran", "-O2", "-J", folder, *sources, "-o", program, *words)
    return program


def _call(*command: object, environ: dict[str, str] | None = None) -> str:
    whole = {**os.environ, **(environ or {})}
    done = subprocess.run(list(map(str, command)), env=whole, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout
