# SPDX-License-Identifier: MIT
"""The demo's Fortran and C programs, built with the libraries that `torchspan build` installs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from row import Row

HERE = Path(__file__).resolve().parent
PROGRAMS = {"Fortran": ("gfortran", "columns_fortran.f90"), "C": ("gcc", "columns_c.c")}


def find_native_rows(prefix, devices, *sizes):
    """A row a language; one whose compiler is missing says how to install it."""
    programs = _build_programs(prefix)
    words = [",".join(devices), *map(str, sizes)]
    return [
        Row(
            f"all devices, {name}",
            [str(programs.get(name, compiler)), *words],
            install=f"sudo apt-get install {compiler}",
            raw=True,
        )
        for name, (compiler, _) in PROGRAMS.items()
    ]


def _build_programs(prefix):
    there = {name: pair for name, pair in PROGRAMS.items() if shutil.which(pair[0])}
    print("building the native libraries (a minute the first time) ...", flush=True)
    command = [sys.executable, "-m", "torchspan", "build", "--prefix", str(prefix)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {name: _compile(prefix, *pair) for name, pair in there.items()}


def _compile(prefix, compiler, source):
    program = prefix / Path(source).stem
    package = "torchspan-fortran" if source.endswith(".f90") else "torchspan"
    environ = os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = [
        subprocess.run(
            ["pkg-config", which, package], env=environ, check=True, text=True, capture_output=True
        ).stdout.split()
        for which in ("--cflags", "--libs")
    ]
    subprocess.run(
        [compiler, "-O2", *flags[0], "-o", program, HERE / source, *flags[1]], check=True
    )
    return program
