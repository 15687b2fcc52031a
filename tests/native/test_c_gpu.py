# SPDX-License-Identifier: MIT
"""What only a real GPU can show, from C and Fortran; elsewhere these say that they were skipped."""

import pytest
import torch

import torchspan
from tests.native.fortran_programs import Installed, install
from tests.zoo import ZOO

THERE = torch.cuda.is_available()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not THERE, reason="this machine has no GPU of CUDA's or ROCm's"),
]
DEVICES = ["cuda:0", "cuda:0,cuda:0"]
if torch.accelerator.device_count() > 1:
    DEVICES += ["cuda:1", "cuda:0,cuda:1"]


@pytest.fixture(scope="module")
def both_file(tmp_path_factory):
    """The MLP with builds for the CPU and for this GPU."""
    path = tmp_path_factory.mktemp("both") / "both.pt2"
    torchspan.save(ZOO["mlp"].make(), path, torch.rand(1, 64), devices=("cpu", "cuda"))
    return path


@pytest.mark.parametrize("rows", [1, 3, 5000, 400_001])
@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("case", ["places", "unaligned", "stream", "registered"])
def test_arrays(run_c, both_file, case, devices, rows):
    if case == "stream" and devices == "cuda:1":
        pytest.skip("the program's stream is of cuda:0, and must be of the model's first device")
    assert run_c("gpu", case, both_file, devices, rows) == ["done"]


@pytest.mark.parametrize("case", ["places", "stream"])
def test_torchscript(run_c, model_file, case):
    assert run_c("gpu", case, model_file("script"), "cuda:0", 1000) == ["done"]


def test_errors_and_life_after_them(run_c, both_file):
    said = run_c("gpu", "wrong", both_file, "cuda:0", 10, environ={"MODEL": str(both_file)})
    assert said[0].startswith("input 'x' is said to be in the memory of cuda:0, and its address is")
    assert "is said to be in the memory of cuda:99, which is not there" in said[1]
    assert "64 bytes cannot be page-locked" in said[2]
    assert "is in the memory of cuda:0, and this model is on cpu:0" in said[3]
    assert said[4] == "done"


@pytest.mark.skipif(bool(torch.version.hip), reason="the program calls CUDA's runtime by name")
def test_fortran(run_folder, tmp_path, both_file):
    prefix = install(run_folder)
    fortran = Installed(prefix, tmp_path, "gfortran")
    said = fortran.run("device", both_file, "cuda:0", "real").stdout.splitlines()
    assert said[-1] == "arrays on a device"
