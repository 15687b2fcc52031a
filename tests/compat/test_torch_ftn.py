# SPDX-License-Identifier: MIT
"""Module torch_ftn: programs written to pytorch-fortran's API, one for each line of it."""

import pytest
import torch

from tests.compat.torch_ftn_programs import (
    KINDS,
    Programs,
    available,
    kinds_and_ranks,
    linear,
    write_models,
)
from tests.native.fortran_programs import install

MISTAKES = {
    "missing": "there is no model file",
    "flags": "flags are 4; they are 0 or a sum of module_use_device and module_use_inference_mode",
    "device": "module_use_device asks for an accelerator, and this process has none. Load",
    "unloaded": "this module is not loaded: call load first.",
    "kind": "an array has a kind of 2 bytes an element that torch_ftn does not take. Give it as",
    "rank": "an array has rank 0; torch_ftn takes ranks 1 to 7, and scalars by add_scalar.",
    "scalar": "add_scalar was given an array of rank 2. Give it to add_array.",
    "pointer": "an array is not allocated, or a pointer not associated.",
    "empty": "this torch_tensor is empty: call from_array, or a module's forward, first.",
    "add": "this torch_tensor is empty: call from_array, or a module's forward, first.",
    "dtype": "to_array was given a pointer to real64; the tensor has dtype float32.",
    "dimensions": "to_array was given a pointer of rank 2; the tensor is (9) in Fortran's order, "
    "of rank 1.",
    "inputs": "2 inputs were given; this model takes 1.",
    "none": "0 inputs were given; this model takes 1.",
    "optimizer": "this torch_module has no optimizer: call create_optimizer_sgd first.",
    "parameters": "parameter",
    "target": "(9,)",
    "save": "no/where.pt cannot be written",
    "script": "the model failed on cpu:0: KeyError: 'on purpose'",
    "completed": "training failed on cpu:0: ValueError: no step",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("torch_ftn_models"))


@pytest.fixture(scope="module", params=["gfortran", "flang-22"])
def programs(request, run_folder, tmp_path_factory):
    if not available(request.param):
        pytest.skip(f"{request.param} or pkg-config is missing")
    prefix = install(run_folder, request.param)
    return Programs(prefix, tmp_path_factory.mktemp("torch_ftn"), request.param)


def test_every_kind_and_rank(programs, models, tmp_path):
    source = tmp_path / "kinds.f90"
    source.write_text(kinds_and_ranks(), encoding="utf-8")
    said = programs.run(source, models / "added.pt").stdout.splitlines()
    assert said == [f"{kind} {rank}" for kind in KINDS for rank in range(1, 8)]


@pytest.mark.parametrize("device", ["", "device"])
def test_every_line_of_the_api(programs, models, device):
    """On the CPU, and on a GPU that is pretended, to which arrays are brought."""
    said = programs.run("lines", models, device, TORCHSPAN_PRETEND_CUDA="1").stdout.splitlines()
    assert said[-1] == "every line holds"
    losses = [float(line.split()[1]) for line in said if line.startswith("loss")]
    (output,) = ([*map(float, line.split()[1:])] for line in said if line.startswith("output"))
    net = linear()
    x = torch.sin(torch.arange(1.0, 13)).reshape(4, 3)
    y = torch.cos(torch.arange(1.0, 9)).reshape(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    expected = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert losses == pytest.approx(expected, rel=1e-4)
    assert output == pytest.approx(net(x).flatten().tolist(), abs=1e-5)


def test_two_scripts_at_once(programs, models):
    said = programs.run("scripts", models).stdout.splitlines()
    assert said == ["5  0.50  1.50", " 2 3  2.00"]
    assert (models / "saved.txt").read_text(encoding="utf-8") == str([0.5] * 5)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_the_program_or_is_told(programs, models, mistake):
    words = MISTAKES[mistake]
    done = programs.run("failures", models, mistake, status=1)
    assert done.stderr.startswith("torchspan: ")
    assert words in done.stderr
    assert done.stdout == ""
    done = programs.run("failures", models, mistake, TORCHSPAN_ON_ERROR="return")
    assert words in done.stdout
    assert done.stderr == ""


def test_memory_stays_flat(programs, models):
    (grown,) = programs.run("steps", models / "twice.pt").stdout.splitlines()
    assert int(grown) < 1 << 20


def test_one_module_in_four_threads(programs, models):
    if programs.compiler != "gfortran":
        pytest.skip("this machine's flang comes without an OpenMP library")
    done = programs.run("threads", models / "twice.pt", options=("-fopenmp",))
    assert done.stdout.split() == ["0"]
