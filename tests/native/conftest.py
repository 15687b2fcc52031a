# SPDX-License-Identifier: MIT
"""The native library, built once a run, and small C programs over it."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import cmake
import pytest
import torch

import torchspan
from tests.native.tensor_library import Library

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
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
def native_build(run_folder: Path, sanitize: str) -> Path:
    """The folder of the library, compiled once by whichever process needs it first."""
    if shutil.which("c++") is None:
        pytest.skip("a C++ compiler is missing")
    folder = run_folder / "native"
    with _locked(run_folder / "native.lock"):
        if not (folder / "built").exists():
            flags = [f"-DCMAKE_{name}_FLAGS={sanitize}" for name in ("C", "CXX") if sanitize]
            _build(folder, f"-DTORCHSPAN_PYTHON={sys.executable}", *flags)
            (folder / "built").touch()
    return folder


def _build(folder: Path, *options: str, environ: dict[str, str] | None = None) -> None:
    _call(CMAKE, "-S", NATIVE, "-B", folder, *options, environ=environ)
    _call(CMAKE, "--build", folder, "--parallel", "2", environ=environ)


@pytest.fixture
def build_without_python(tmp_path: Path, without_python: dict[str, str]) -> Path:
    """The folder of the library built from a LibTorch given by its path, where no Python is."""
    folder = tmp_path / "without-python"
    libtorch = Path(torch.__file__).parent
    _build(folder, f"-DTORCHSPAN_LIBTORCH={libtorch}", environ=without_python)
    return folder


@pytest.fixture(scope="session")
def c_program(native_build: Path, run_folder: Path, sanitize: str) -> Callable[..., Path]:
    """Gives the path of a compiled program of ``programs/``, by its name."""

    def find(name: str, *options: str) -> Path:
        """A name with a slash is an example's."""
        source = EXAMPLES / f"{name}.c" if "/" in name else HERE / "programs" / f"{name}.c"
        program = run_folder / f"c_{source.stem}"
        with _locked(run_folder / f"c_{source.stem}.lock"):
            if not program.exists():
                _call(
                    *("cc", *STRICT, *sanitize.split(), "-pthread", "-D_POSIX_C_SOURCE=200809L"),
                    *(*options, "-I", NATIVE / "include", source, "-o", program),
                    *("-L", native_build, "-ltorchspan", "-lm", f"-Wl,-rpath,{native_build}"),
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
def run_c(c_program: Callable[..., Path], sanitize: str) -> Callable[..., list[str]]:
    """Runs a program of ``programs/`` and gives its lines; nothing else may stand on stderr than
    ``printed`` allows."""

    def run(
        name: str,
        *arguments: object,
        environ: dict[str, str] | None = None,
        printed: str = "",
    ) -> list[str]:
        whole = {**os.environ, **(environ or {})}
        done = subprocess.run(
            [str(c_program(name)), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            env=whole,
        )
        said = re.sub(REFUSED, "", done.stderr) if sanitize else done.stderr
        assert re.fullmatch(printed, said), said
        assert done.returncode == 0, done.stdout
        return done.stdout.splitlines()

    return run


@pytest.fixture(scope="session")
def tensors(native_build: Path) -> Library:
    """The library's tensors, called from this process."""
    return Library(native_build)
