# SPDX-License-Identifier: MIT
"""``python -m bench native``: calls from a Fortran program, against plain TorchScript from C++.

The plain way wraps its tensors once, calls ``forward`` and copies the result out, as bindings do.
All ways take turns in one process; the ratios are what counts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

import torchspan
from bench.measure import Row
from bench.models import linear, mlp
from torchspan._devices import usable_cores
from torchspan._model_file import Archive, Build, unpack_build

__all__ = ["run"]

HERE = Path(__file__).parent
NATIVE = Path(torchspan.__file__).parent / "native"
ABOVE = 0.3


@dataclass(frozen=True)
class Case:
    """A model, a batch, and how much quicker than TorchScript it must be on 1 and on 2 threads."""

    model: str
    width: int
    rows: int
    least: tuple[float, float]


CASES = (
    Case("linear 5-5", 5, 1, (2.7, 2.7 * 0.85)),
    Case("MLP", 64, 1, (3.0, 3.0 * 0.85)),
    Case("MLP", 64, 64, (1.5, 1.2)),
    Case("MLP", 64, 4096, (2.3, 2.3 * 0.85)),
    Case("MLP", 64, 65536, (4.0, 3.5)),
)


def run(folder: Path) -> list[Row]:
    """Build the program, save the models, measure on one thread and on two."""
    if any(shutil.which(tool) is None for tool in ("gfortran", "cmake", "c++")):
        return []
    program = _build(folder)
    for name, make, width, batches in (("linear 5-5", linear, 5, (1,)), ("MLP", mlp, 64, (1,))):
        example = torch.rand(2, width)
        torchspan.save(make(), folder / f"{name}.pt2", example, static_batches=batches)
        torchspan.save(make(), folder / f"{name}.pt", example)
    rows: list[Row] = []
    for threads in (1, 2):
        if threads <= usable_cores():
            for case in CASES:
                rows += _measure(program, folder, case, threads)
    return rows


def _measure(program: Path, folder: Path, case: Case, threads: int) -> list[Row]:
    compiled, script = folder / f"{case.model}.pt2", folder / f"{case.model}.pt"
    words = [compiled, script, case.width, case.rows]
    if case.rows == 1 and threads == 1:
        words.append(_library(compiled, case.rows))
    environ = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    span, plain, *bare = (float(each) for each in _call(program, *words, environ=environ).split())
    name = f"from Fortran, {threads} thread{'s' * (threads > 1)}: {case.model}, batch {case.rows}"
    least = case.least[threads - 1]
    rows = [
        Row(name, "plain TorchScript", plain * 1e-6, 1.0),
        Row(
            name, "torchspan", span * 1e-6, plain / span, f"at least {least:.2f}x",
            plain / span >= least,
        ),
    ]  # fmt: skip
    for each in bare:
        bar = f"torchspan at most {ABOVE} µs above"
        rows.append(
            Row(name, "the build's container", each * 1e-6, None, bar, span <= each + ABOVE)
        )
    return rows


def _library(path: Path, rows: int) -> Path:
    """The library of the build that a batch of ``rows`` takes."""

    def narrowest(build: Build) -> float:
        return build.breadth

    build = min(
        (each for each in torchspan.describe(path).builds if each.takes(rows)), key=narrowest
    )
    with Archive(path) as archive:
        return next(unpack_build(archive, build).rglob("*.so"))


def _build(folder: Path) -> Path:
    include = Path(torch.__file__).parent / "include"
    libraries = Path(torch.__file__).parent / "lib"
    built = folder / "b"
    _call("cmake", "-S", NATIVE, "-B", built, f"-DTORCHSPAN_PYTHON={sys.executable}")
    _call("cmake", "--build", built, "--parallel", "2")
    flags = ("-O2", f"-I{include}", f"-I{include}/torch/csrc/api/include")
    for name in ("plain", "bare"):
        _call("c++", "-std=c++20", *flags, "-c", HERE / f"{name}.cpp", "-o", folder / f"{name}.o")
    modules = built / "fortran" / "modules"
    for name in ("timing", "calls"):
        source, target = HERE / f"{name}.f90", folder / f"{name}.o"
        _call("gfortran", "-O2", f"-I{modules}", "-J", folder, "-c", source, "-o", target)
    places = [built, built / "fortran", libraries]
    _call(
        *("gfortran", *(folder / f"{name}.o" for name in ("calls", "timing", "plain", "bare"))),
        *("-o", folder / "calls", *(f"-L{place}" for place in places), "-Wl,--no-as-needed"),
        *("-ltorchspan_fortran", "-ltorchspan", "-ltorch", "-ltorch_cpu", "-lc10", "-lstdc++"),
        *(*(f"-Wl,-rpath,{place}" for place in places), "-Wl,--allow-shlib-undefined"),
    )
    return folder / "calls"


def _call(*command: object, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(list(map(str, command)), env=environ, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout
