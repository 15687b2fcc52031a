# SPDX-License-Identifier: MIT
"""The native library, built once a run, and small C programs over it."""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cmake
import pytest
import torch

import torchspan

HERE = Path(__file__).parent
NATIVE = Path(torchspan.__file__).parent / "native"
CMAKE = Path(cmake.CMAKE_BIN_DIR) / "cmake"  # pip's `cmake` is a Python script
STRICT = ("-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror")
TOOLS = ("cc", "c++", "gfortran", "make", "ccache", "sh", "as", "ld", "ar", "ranlib", "nm", "uname")
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1"
# Too large an allocation is torch's to report, as it is without sanitizers, which warn of it.
REFUSED = r"==\d+==WARNING: AddressSanitizer failed to allocate .*\n"
SANITIZERS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "LSAN_OPTIONS": f"suppressions={HERE / 'leaks.txt'}:print_suppressions=0",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sanitize", action="store_true", help="run the C tests with sanitizers (make sanitize)"
    )


@pytest.fixture(scope="session")
def sanitize(pytestconfig: pytest.Config) -> str:
    """The compilers' options for sanitizers; none unless --sanitize asks for them."""
    if not pytestconfig.getoption("--sanitize", default=False):
        return ""
    os.environ.update(SANITIZERS)
    return SANITIZE


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _call(*command: object, environ: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, env=environ
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="session")
def without_python(run_folder: Path) -> dict[str, str]:
    """An environment whose PATH holds what a build needs and no Python."""
    folder = run_folder / "tools"
    with _locked(run_folder / "tools.lock"):
        folder.mkdir(exist_ok=True)
        for tool in TOOLS:
            found = shutil.which(tool)
            if found is not None and not (folder / tool).exists():
                (folder / tool).symlink_to(found)
    return {**os.environ, "PATH": str(folder)}


@pytest.fixture(scope="session")
def native_build(run_folder: Path, sanitize: str, without_python: dict[str, str]) -> Path:
    """The folder of the library, compiled once by whichever process needs it first, without
    Python."""
    if shutil.which("c++") is None:
        pytest.skip("a C++ compiler is missing")
    folder = run_folder / "native"
    with _locked(run_folder / "native.lock"):
        if not (folder / "built").exists():
            flags = [f"-DCMAKE_{name}_FLAGS={sanitize}" for name in ("C", "CXX") if sanitize]
            libtorch = f"-DTORCHSPAN_LIBTORCH={Path(torch.__file__).parent}"
            configure = (CMAKE, "-S", NATIVE, "-B", folder, libtorch, *flags)
            _call(*configure, environ=without_python)
            _call(CMAKE, "--build", folder, "--parallel", "2", environ=without_python)
            (folder / "built").touch()
    return folder


@pytest.fixture(scope="session")
def c_program(native_build: Path, run_folder: Path, sanitize: str) -> Callable[[str], Path]:
    """Gives the path of a compiled program of ``programs/``, by its name."""

    def find(name: str) -> Path:
        program = run_folder / f"c_{name}"
        with _locked(run_folder / f"c_{name}.lock"):
            if not program.exists():
                _call(
                    *("cc", *STRICT, *sanitize.split(), "-pthread", "-D_POSIX_C_SOURCE=200809L"),
                    *("-I", NATIVE / "include", HERE / "programs" / f"{name}.c", "-o", program),
                    *("-L", native_build, "-ltorchspan", f"-Wl,-rpath,{native_build}"),
                    # The library finds torch by its own path, which the linker does not follow.
                    "-Wl,--allow-shlib-undefined",
                )
        return program

    return find


@pytest.fixture
def run_c(c_program: Callable[[str], Path], sanitize: str) -> Callable[..., list[str]]:
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
        said = re.sub(REFUSED, "", done.stderr) if sanitize else done.stderr
        assert said == ""
        assert done.returncode == 0, done.stdout
        return done.stdout.splitlines()

    return run
