# SPDX-License-Identifier: MIT
"""``torchspan build`` where it fails; tests/native builds with it for real."""

import os
import sys
from pathlib import Path

import pytest
import torch

import torchspan
from torchspan.cli import build

NATIVE = Path(torchspan.__file__).parent / "native"
TORCH = Path(torch.__file__).parent


def give_tools(monkeypatch, folder, **scripts):
    """Tools in a folder that is the whole PATH, and none beside this Python."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.delenv("FC", raising=False)


def test_the_cmake_dir_is_that_of_the_sources_and_of_this_torch(torchspan_command):
    done = torchspan_command("--cmake-dir")
    first, *others = done.out.strip().split(";")
    assert Path(first) == NATIVE / "cmake"
    assert (Path(first) / "torchspan-config.cmake").is_file()
    beside = NATIVE.parents[1] / "torch"
    assert [Path(each) for each in others] == ([] if beside == TORCH else [TORCH])


def test_torch_beside_torchspan_need_not_be_named(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "NATIVE", TORCH.parent / "torchspan" / "native")
    assert build.cmake_path() == str(TORCH.parent / "torchspan" / "native" / "cmake")


@pytest.mark.parametrize("where", ["--fc", "FC"])
def test_an_absent_compiler_is_named(torchspan_command, monkeypatch, tmp_path, where):
    give_tools(monkeypatch, tmp_path / "bin", cmake="", ninja="")
    words = ["--fc", "nofort"] if where == "--fc" else []
    if where == "FC":
        monkeypatch.setenv("FC", "nofort")
    done = torchspan_command("build", "--prefix", str(tmp_path / "prefix"), *words)
    assert done.status == 1
    assert "there is no Fortran compiler 'nofort'" in done.err


@pytest.mark.parametrize("tool", ["cmake", "ninja"])
def test_an_absent_tool_is_named(torchspan_command, monkeypatch, tmp_path, tool):
    give_tools(monkeypatch, tmp_path / "bin", **{"cmake": "", "ninja": "", tool: ""})
    (tmp_path / "bin" / tool).unlink()
    done = torchspan_command("build", "--prefix", str(tmp_path / "prefix"))
    assert done.status == 1
    assert f"there is no {tool}. Install it: pip install 'torchspan[build]'" in done.err


def test_a_failure_shows_the_command_its_status_and_what_it_said(
    torchspan_command, monkeypatch, tmp_path
):
    give_tools(monkeypatch, tmp_path / "bin", cmake="echo no compiler; exit 3", ninja="")
    done = torchspan_command("build", "--prefix", str(tmp_path / "prefix"))
    assert done.status == 1
    assert "this command ended with status 3:\n" in done.err
    assert f"{tmp_path / 'bin' / 'cmake'} -S {NATIVE} -B " in done.err
    assert done.err.endswith("\nno compiler\n")


def test_without_python_s_headers_it_says_so(torchspan_command, monkeypatch, tmp_path):
    line = f"{build.NO_SCRIPTS}there are no headers."
    give_tools(monkeypatch, tmp_path / "bin", cmake=f"echo '{line}'", ninja="")
    done = torchspan_command("build", "--prefix", str(tmp_path / "prefix"))
    assert done.status == 0
    assert "Python scripts will not run as models: there are no headers.\n" in done.err


def test_without_a_fortran_compiler_it_says_so(torchspan_command, monkeypatch, tmp_path):
    log = tmp_path / "log"
    give_tools(monkeypatch, tmp_path / "bin", cmake=f'echo "$@" >> {log}', ninja="")
    done = torchspan_command("build", "--prefix", str(tmp_path / "prefix"), "--jobs", "3")
    assert done.status == 0
    assert "there is no Fortran compiler here, so there is no Fortran module" in done.err
    assert f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}" in done.out
    configure, compile, install = log.read_text().splitlines()
    assert "-DCMAKE_Fortran_COMPILER=NOTFOUND" in configure
    assert compile.endswith("--parallel 3")
    assert install == f"--install {os.fspath(tmp_path)}/prefix/share/torchspan/build/c"


def test_fronts_reach_the_build(torchspan_command, monkeypatch, tmp_path):
    log = tmp_path / "log"
    give_tools(monkeypatch, tmp_path / "bin", cmake=f'echo "$@" >> {log}', ninja="", gfortran="")
    words = ["build", "--prefix", str(tmp_path / "prefix"), "--with", "ftorch,torch_ftn"]
    assert torchspan_command(*words).status == 0
    assert "-DTORCHSPAN_WITH=ftorch,torch_ftn" in log.read_text().splitlines()[0].split()


def test_an_unknown_front_is_an_error(torchspan_command, tmp_path):
    done = torchspan_command("build", "--prefix", str(tmp_path), "--with", "ftorch,mxnet")
    assert done.status != 0
    assert "'mxnet' is none of ftorch, torch_ftn" in done.err


def test_fronts_need_a_fortran_compiler(torchspan_command, monkeypatch, tmp_path):
    give_tools(monkeypatch, tmp_path / "bin", cmake="", ninja="")
    done = torchspan_command("build", "--prefix", str(tmp_path / "prefix"), "--with", "ftorch")
    assert done.status == 1
    assert "--with ftorch needs a Fortran compiler" in done.err


def test_each_front_is_a_folder():
    folders = {each.parent.name for each in (NATIVE / "compat").glob("*/CMakeLists.txt")}
    assert folders <= set(build.FRONTS)
