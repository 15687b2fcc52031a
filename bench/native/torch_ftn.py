# SPDX-License-Identifier: MIT
"""``python -m bench torch_ftn``: what pytorch-fortran's names cost above torchspan's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from bench.measure import Row
from bench.models import linear, mlp

__all__ = ["run"]

SOURCE = Path(__file__).with_name("torch_ftn.f90")
ABOVE, MAKING = 0.5, 0.7


def run(folder: Path) -> list[Row]:
    """Build the module and the program, and time a small and a middling model."""
    if any(shutil.which(tool) is None for tool in ("gfortran", "pkg-config", "c++")):
        return []
    prefix, program = folder / "torch_ftn", folder / "time_torch_ftn"
    build = [sys.executable, "-m", "torchspan", "build", "--prefix", str(prefix)]
    _call(*build, "--fc", "gfortran", "--with", "torch_ftn")
    environ = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    words = _call("pkg-config", "--cflags", "--libs", "pytorch_fort_proxy", environ=environ).split()
    _call("gfortran", "-O2", str(SOURCE), "-o", str(program), *words)
    rows: list[Row] = []
    for name, make, width in (("linear 5-5", linear, 5), ("MLP", mlp, 64)):
        path = folder / f"ftn-{name}.pt"
        torch.jit.trace(make(), torch.ones(1, width)).save(str(path))
        environ = {**os.environ, "OMP_NUM_THREADS": "1"}
        said = _call(str(program), str(path), str(width), environ=environ)
        forward, plain, making = (float(each) for each in said.split())
        bench = f"torch_ftn, 1 thread: {name}, batch 1"
        bar = f"at most {ABOVE} µs above"
        rows += [
            Row(bench, "tspan_module_run", plain * 1e-6, 1.0),
            Row(bench, "forward", forward * 1e-6, None, bar, forward <= plain + ABOVE),
            Row(bench, "from_array and its end", making * 1e-6, None, f"at most {MAKING} µs",
                making <= MAKING),
        ]  # fmt: skip
    return rows


def _call(*command: str, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout
