# SPDX-License-Identifier: MIT
"""find_package(torchspan) on the sources: which torch it takes, and what it says without one."""

import shutil
import sys
from pathlib import Path

import pytest
import torch

import torchspan
from tests.native.fortran_programs import call

CONFIG = Path(torchspan.__file__).parent / "native" / "cmake"
TORCH = Path(torch.__file__).parent


@pytest.fixture
def configure(tmp_path):
    """Configure a project that wants torchspan; gives what CMake said."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is missing: pip install 'torchspan[build]'")
    lines = ("cmake_minimum_required(VERSION 3.25)", "project(x LANGUAGES C)")
    (tmp_path / "CMakeLists.txt").write_text("\n".join([*lines, "find_package(torchspan)\n"]))

    def configure(*options, status=0, path=CONFIG):
        command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={path}"]
        done = call([*command, *options], status=status)
        return " ".join((done.stdout + done.stderr).split())

    return configure


@pytest.mark.parametrize("way", ["prefix", "python", "libtorch"])
def test_torch_is_found(configure, way):
    options = {
        "prefix": [],
        "python": [f"-DTORCHSPAN_PYTHON={sys.executable}"],
        "libtorch": [f"-DTORCHSPAN_LIBTORCH={TORCH}"],
    }
    said = configure(*options[way], path=f"{CONFIG};{TORCH}" if way == "prefix" else CONFIG)
    version = ".".join(torch.__version__.split(".")[:2])
    assert f"torchspan: torch {version} in {TORCH}" in said


def test_a_python_without_torch_is_an_error_that_says_what_to_give(configure):
    if (CONFIG.parents[2] / "torch").exists():
        pytest.skip("torch lies beside torchspan")
    said = configure("-DTORCHSPAN_PYTHON=false", status=1)
    assert "There is no torch beside torchspan, and false has none." in said


def test_a_folder_without_libtorch_is_an_error(configure, tmp_path):
    said = configure(f"-DTORCHSPAN_LIBTORCH={tmp_path}", status=1)
    assert f"TORCHSPAN_LIBTORCH is {tmp_path}, where there is no lib/libtorch_cpu.so." in said


def test_an_old_torch_is_an_error(configure, tmp_path):
    header = tmp_path / "old" / "include" / "torch" / "headeronly" / "version.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 5\n")
    (tmp_path / "old" / "lib").mkdir()
    (tmp_path / "old" / "lib" / "libtorch_cpu.so").touch()
    said = configure(f"-DTORCHSPAN_LIBTORCH={tmp_path / 'old'}", status=1)
    assert "is 2.5; torchspan needs 2.11 or newer." in said


def test_a_newer_version_than_this_is_not_found(configure, tmp_path):
    text = (tmp_path / "CMakeLists.txt").read_text()
    (tmp_path / "CMakeLists.txt").write_text(text.replace("torchspan)", "torchspan 99 REQUIRED)"))
    assert 'compatible with requested version "99"' in configure(status=1)


def test_a_fortran_compiler_that_takes_no_arrays_of_any_kind_is_an_error(configure, tmp_path):
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is missing: sudo apt-get install gfortran")
    text = (tmp_path / "CMakeLists.txt").read_text()
    (tmp_path / "CMakeLists.txt").write_text(text.replace("LANGUAGES C", "LANGUAGES C Fortran"))
    failed = [f"-DTORCHSPAN_FORTRAN_TAKES_ANY_{probe}=OFF" for probe in ("RANK", "KIND")]
    said = configure(f"-DTORCHSPAN_LIBTORCH={TORCH}", *failed, status=1)
    assert "cannot compile procedures with type(*) arguments. Choose a newer one" in said
