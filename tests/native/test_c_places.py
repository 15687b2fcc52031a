# SPDX-License-Identifier: MIT
"""Arrays on devices from C: taken on pretended ones, refused where the model cannot have them."""

import pytest
import torch

TWO = {"TORCHSPAN_PRETEND_CUDA": "2"}


@pytest.fixture
def run_at(run_c, mlp_file):
    """Runs two rows of ones that are said to be at a DLPack type and index."""

    def run(devices, kind, index, mode="run", environ=TWO, path=mlp_file):
        (line,) = run_c("places", path, devices, kind, index, mode, environ=environ)
        return line

    return run


@pytest.fixture(scope="module")
def total():
    """The sum of the results."""
    from tests.zoo import ZOO

    with torch.no_grad():
        return f"{float(ZOO['mlp'].make()(torch.ones(2, 64)).double().sum()):.4f}"


def check_total(line, total):
    status, said = line.split(" ", 1)
    assert (status, float(said)) == ("0", pytest.approx(float(total), abs=2e-4))


@pytest.mark.parametrize("mode", ["run", "submit", "0", "0x1000"])
@pytest.mark.parametrize("devices", ["cuda:0", "cuda:0,cuda:1"])
def test_pretended_devices_have_the_host_s_memory(run_at, total, devices, mode):
    check_total(run_at(devices, 2, 1, mode), total)


@pytest.mark.parametrize(("kind", "index"), [(2, 0), (10, 1), (13, 0), (1, 0), (3, 0), (11, 0)])
def test_kinds_of_memory(run_at, total, kind, index):
    check_total(run_at("all", kind, index), total)


@pytest.mark.parametrize(("kind", "name"), [(14, "xpu"), (8, "mps")])
def test_other_kinds(run_at, model_file, kind, name):
    environ = {f"TORCHSPAN_PRETEND_{name.upper()}": "1"}
    for path in (model_file("mlp"), model_file("script")):
        assert run_at(name, kind, 0, environ=environ, path=path).startswith("0 ")


def test_a_device_that_is_not_there(run_at):
    for index in (2, -1):
        assert run_at("cuda:0", 2, index) == (
            f"3 input 'x' is said to be in the memory of cuda:{index}, which is not there. This "
            "process sees cuda:0, cuda:1."
        )


@pytest.mark.parametrize("environ", [{}, TWO], ids=["none", "pretended"])
@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_a_model_on_cpus(run_at, devices, environ):
    there = "cpu:0,cpu:1" if "," in devices else "cpu:0"
    assert run_at(devices, 2, 1, environ=environ) == (
        f"2 input 'x' is in the memory of cuda:1, and this model is on {there}. Open the model "
        'with devices="cuda:1", or copy the array to the host\'s memory.'
    )


def test_a_model_on_other_devices_too(run_at):
    assert run_at("cuda:0,cpu", 2, 0).startswith(
        "2 input 'x' is in the memory of cuda:0, and this model is on cuda:0,cpu:0. Open"
    )
    assert run_at("cuda:0", 14, 3).startswith(
        "2 input 'x' is in the memory of xpu:3, and this model is on cuda:0."
    )


def test_a_device_type_that_torch_has_not(run_at):
    for kind in (0, 4, 99, -1):
        assert run_at("cuda:0", kind, 0) == (
            f"2 input 'x' has device type {kind}; it is 1 for the host's memory, 2 for CUDA's, 10 "
            "for ROCm's, 14 for oneAPI's and 8 for Metal's."
        )


def test_a_stream_where_there_is_none(run_at, total):
    assert run_at("cpu", 1, 0, "0x1000") == (
        "2 a stream was given to a model on cpu:0, which has none. Open the model on the stream's "
        "device, or give NULL."
    )
    assert run_at("cpu", 1, 0, "0").startswith("0 ")


ALREADY = "2 the memory is registered already. Register it once, or unregister it first."
PART = "2 a part of the memory is registered already. Register the whole of it once, or "
UNKNOWN = "2 no registered memory begins there. Give the pointer that was registered, once."
NULL = "2 data is NULL; give a pointer."


@pytest.mark.parametrize(
    ("steps", "answers"),
    [
        ("+0:64 -0 +0:64 -0", ["0 "] * 4),
        ("+0:64 +0:64 -0 -0", ["0 ", ALREADY, "0 ", UNKNOWN]),
        ("+0:64 +0:32", ["0 ", ALREADY]),
        ("+64:64 +0:64 +128:64", ["0 "] * 3),
        ("+64:64 +0:65", ["0 ", f"{PART}unregister the part first."]),
        ("+64:64 +127:64", ["0 ", f"{PART}unregister the part first."]),
        ("+64:64 +80:8 -80", ["0 ", f"{PART}unregister the part first.", UNKNOWN]),
        ("-0 +null -null", [UNKNOWN, NULL, NULL]),
        ("+8:0 -8 -8", ["0 ", "0 ", UNKNOWN]),
    ],
)
def test_registering(run_c, steps, answers):
    assert run_c("lock", *steps.split()) == answers
