# SPDX-License-Identifier: MIT
"""The native library, built once a run, and small C programs over it."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

import torchspan

HERE = Path(__file__).parent
NATIVE = Path(torchspan.__file__).parent / "native"
STRICT = ("-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _call(*command: object) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="session")
def native_build(run_folder: Path) -> Path:
    """The folder of the library, compiled once by whichever process needs it first."""
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("cmake or a C++ compiler is missing")
    folder = run_folder / "native"
    with _locked(run_folder / "native.lock"):
        if not (folder / "built").exists():
            _call("cmake", "-S", NATIVE, "-B", folder, f"-DTORCHSPAN_PYTHON={sys.executable}")
            _call("cmake", "--build", folder, "--parallel", "2")
            (folder / "built").touch()
    return folder


@pytest.fixture(scope="session")
def c_program(native_build: Path, run_folder: Path) -> Callable[[str], Path]:
    """Gives the path of a compiled program of ``programs/``, by its name."""

    def find(name: str) -> Path:
        program = run_folder / f"c_{name}"
        with _locked(run_folder / f"c_{name}.lock"):
            if not program.exists():
                _call(
                    *("cc", *STRICT, "-pthread", "-D_POSIX_C_SOURCE=200809L"),
                    *("-I", NATIVE / "include", HERE / "programs" / f"{name}.c", "-o", program),
                    *("-L", native_build, "-ltorchspan", f"-Wl,-rpath,{native_build}"),
                    # The library finds torch by its own path, which the linker does not follow.
                    *("-Wl,--allow-shlib-undefined", "-ldl", "-lm"),
                )
        return program

    return find


@pytest.fixture(scope="session")
def inside_program(native_build: Path, run_folder: Path) -> Callable[[str], Path]:
    """Gives the path of a program of ``inside/``, linked with the library's own objects."""
    torch = Path(find_spec("torch").submodule_search_locations[0])

    def find(name: str) -> Path:
        program = run_folder / f"inside_{name}"
        with _locked(run_folder / f"inside_{name}.lock"):
            if not program.exists():
                _call(
                    *("c++", "-std=c++20", "-O1", "-rdynamic", "-isystem", torch / "include"),
                    *("-I", NATIVE / "src", "-I", NATIVE / "include"),
                    HERE / "inside" / f"{name}.cpp",
                    *sorted((native_build / "CMakeFiles" / "torchspan.dir" / "src").glob("*.o")),
                    *(
                        "-o",
                        program,
                        "-pthread",
                        "-L",
                        torch / "lib",
                        f"-Wl,-rpath,{torch / 'lib'}",
                    ),
                    *("-ltorch", "-ltorch_cpu", "-lc10"),
                )
        return program

    return find


@pytest.fixture
def run_c(c_program: Callable[[str], Path]) -> Callable[..., list[str]]:
    """Runs a program of ``programs/`` and gives its lines; nothing may stand on stderr."""

    def run(name: str, *arguments: object, environ: dict[str, str] | None = None) -> list[str]:
        whole = {**os.environ, **(environ or {})}
        done = subprocess.run(
            [str(c_program(name)), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            env=whole,
        )
        assert done.stderr == ""
        assert done.returncode == 0, done.stdout
        return done.stdout.splitlines()

    return run
