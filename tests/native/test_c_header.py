# SPDX-License-Identifier: MIT
"""The header alone, the version, placement and devices from C: the same as from Python."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import torchspan
from tests.native.conftest import NATIVE, STRICT

VECTORS = json.loads(
    (Path(__file__).parents[1] / "data" / "launcher_vectors.json").read_text(encoding="utf-8")
)["vectors"]
LAUNCHERS = json.loads((NATIVE.parent / "launchers.json").read_text(encoding="utf-8"))["launchers"]


def without_launcher():
    """Each variable of any launcher, to be taken out of a program's environment."""
    names = set()
    for row in LAUNCHERS:
        for key in ("marks", "rank", "size", "local_rank", "local_size"):
            names.update(row[key])
        names.update(row.get("alone", {}).values())
    return names


@pytest.mark.parametrize("header", sorted(each.name for each in NATIVE.glob("include/*.h")))
@pytest.mark.parametrize("compiler", ["cc -x c", "c++ -x c++"])
def test_a_header_stands_alone(tmp_path, compiler, header):
    strict = STRICT if compiler.startswith("cc") else ("-std=c++11", *STRICT[1:])
    source = tmp_path / "alone"
    source.write_text(f'#include "{header}"\nint torchspan_header;\n', encoding="utf-8")
    command = [*compiler.split(), *strict, "-I", NATIVE / "include", "-c", source, "-o", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_versions(run_c):
    assert run_c("header") == [f"{torchspan.__version__} 1 1 ''"]


@pytest.mark.parametrize("vector", VECTORS, ids=[each["name"] for each in VECTORS])
def test_placement(c_program, vector):
    gone = without_launcher()
    environ = {name: value for name, value in os.environ.items() if name not in gone}
    environ.update(vector["environ"])
    done = subprocess.run(
        [c_program("place")], env=environ, capture_output=True, text=True, timeout=60
    )
    first, second = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    if "error" in vector:
        assert first.startswith("4 ")
        assert vector["error"] in first
    else:
        keys = ("rank", "size", "local_rank", "local_size", "launcher")
        assert first == "0 " + " ".join(str(vector[key]) for key in keys)
    assert second == "2 placement is NULL; give a pointer."


@pytest.mark.parametrize(
    "spec",
    ["cpu", "cpu:0,cpu:1", " CPU:2 , cpu", "cuda", "cuda:1", "cuda:1,cpu:3", "xpu:0", "mps", "all"],
)
@pytest.mark.parametrize(
    "pretend", [{}, {"TORCHSPAN_PRETEND_CUDA": "3"}], ids=["real", "pretended"]
)
def test_devices_are_those_of_python(run_c, monkeypatch, spec, pretend):
    for name, value in pretend.items():
        monkeypatch.setenv(name, value)
    try:
        found = torchspan.devices(spec)
        expected = f"0 {len(found)} " + " ".join(f"{each}={each.backing}" for each in found)
    except torchspan.DeviceError as error:
        expected = f"3 {error}"
    assert run_c("find", spec) == [expected]


@pytest.mark.parametrize(
    "spec", ["", "cpu,", "gpu", "tpu:0", "cpu:64", "cpu:01", "cuda:9", "mps:1", "cpu:-1", "cpu:0:1"]
)
def test_errors_are_those_of_python(run_c, spec):
    with pytest.raises(torchspan.DeviceError) as raised:
        torchspan.devices(spec)
    assert run_c("find", spec) == [f"3 {raised.value}"]


def test_more_devices_than_there_is_room_for(run_c):
    lines = run_c("find", "cuda", environ={"TORCHSPAN_PRETEND_CUDA": "6"})
    assert lines == ["0 6 cuda:0=cpu cuda:1=cpu cuda:2=cpu cuda:3=cpu"]


@pytest.mark.parametrize("value", ["many", "-1", "65"])
def test_a_senseless_number_to_pretend(run_c, value):
    (line,) = run_c("find", "cuda", environ={"TORCHSPAN_PRETEND_CUDA": value})
    assert line == (
        f"3 TORCHSPAN_PRETEND_CUDA='{value}' is not a number of devices from 0 to 64. Set it to "
        "one, or unset it."
    )


def test_rank_is_this_process_s_own(run_c):
    ranks = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "TORCHSPAN_PRETEND_CUDA": "2"}
    assert run_c("find", "rank", environ=ranks) == ["0 1 cuda:1=cpu"]
    assert run_c("find", "rank", environ={"RANK": "0"})[0].startswith("4 the variables of torchrun")
