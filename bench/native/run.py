# SPDX-License-Identifier: MIT
"""``python -m bench.native.run``: calls from a compiled program, against plain TorchScript.

Both take turns in one process, one thread each; the ratio is what counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import torchspan
from bench.models import linear, mlp

HERE = Path(__file__).parent
NATIVE = Path(torchspan.__file__).parent / "native"
CASES = (("linear 5-5", linear, 5, (1,)), ("mlp 64-256-256-64", mlp, 64, (1, 64, 4096)))


def main() -> None:
    """Build, save, measure and print."""
    with tempfile.TemporaryDirectory(prefix="torchspan-bench-") as name:
        folder = Path(name)
        program = _build(folder)
        print(f"{'':24}{'torchspan µs':>14}{'plain µs':>14}{'ratio':>8}")
        for what, make, width, batches in CASES:
            compiled, script = folder / f"{width}.pt2", folder / f"{width}.pt"
            small = tuple(batch for batch in batches if batch <= 64)
            torchspan.save(make(), compiled, torch.rand(2, width), static_batches=small)
            torchspan.save(make(), script, torch.rand(2, width))
            for rows in batches:
                span, plain = _measure(program, compiled, script, width, rows)
                print(f"{f'{what}, batch {rows}':24}{span:14.2f}{plain:14.2f}{plain / span:8.2f}")


def _build(folder: Path) -> Path:
    include = Path(torch.__file__).parent / "include"
    libraries = Path(torch.__file__).parent / "lib"
    _call("cmake", "-S", NATIVE, "-B", folder / "b", f"-DTORCHSPAN_PYTHON={sys.executable}")
    _call("cmake", "--build", folder / "b", "--target", "torchspan", "--parallel", "2")
    flags = ("-O2", f"-I{include}", f"-I{include}/torch/csrc/api/include")
    _call("c++", "-std=c++20", *flags, "-c", HERE / "plain.cpp", "-o", folder / "plain.o")
    _call(
        *("cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", f"-I{NATIVE / 'include'}", "-c"),
        *(HERE / "calls.c", "-o", folder / "calls.o"),
    )
    _call(
        *("c++", folder / "calls.o", folder / "plain.o", "-o", folder / "calls"),
        *(f"-L{folder / 'b'}", "-ltorchspan", f"-L{libraries}", "-ltorch", "-ltorch_cpu", "-lc10"),
        *(f"-Wl,-rpath,{folder / 'b'}", f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"),
    )
    return folder / "calls"


def _measure(program: Path, *arguments: object) -> tuple[float, float]:
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    span, plain = _call(program, *arguments, environ=environ).split()
    return float(span), float(plain)


def _call(*command: object, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(list(map(str, command)), env=environ, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
