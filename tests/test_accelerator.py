# SPDX-License-Identifier: MIT
"""What only a real accelerator can show; on other machines these say that they were skipped."""

import numpy as np
import pytest
import torch

import torchspan
from tests.zoo import ZOO

THERE = torch.accelerator.is_available()
KIND = torch.accelerator.current_accelerator().type if THERE else "none"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not THERE, reason="this machine has no accelerator"),
]


@pytest.fixture(scope="module")
def both_file(tmp_path_factory):
    """The MLP with builds for the CPU and for this accelerator."""
    path = tmp_path_factory.mktemp("both") / "both.pt2"
    torchspan.save(ZOO["mlp"].make(), path, torch.rand(1, 64), devices=("cpu", KIND), tuned=False)
    return path


@pytest.fixture(scope="module", params=[f"{KIND}:0", f"{KIND}:0,{KIND}:0", f"{KIND}:0,cpu"])
def net(request, both_file):
    with torchspan.load(both_file, devices=request.param) as opened:
        yield opened


def close(ours, wanted):
    torch.testing.assert_close(ours, wanted, rtol=1e-3, atol=1e-4)


def test_the_file_opens_for_each_of_its_devices(both_file):
    told = torchspan.describe(both_file)
    assert [build.device for build in told.builds] == ["cpu", KIND]
    assert all(build.error < 1e-4 for build in told.builds)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 1000, 300_001])
def test_rows_from_and_to_host_memory(net, mlp, rows):
    x = torch.rand(rows, 64)
    close(net(x), mlp(x).detach())
    out = np.full((rows, 64), np.nan, np.float32)
    net(x.numpy(), out=out)
    close(torch.from_numpy(out), mlp(x).detach())


def test_slices_that_are_not_aligned(net, mlp):
    x = torch.rand(1000 * 64 + 1)[1:].view(1000, 64)
    close(net(x), mlp(x).detach())
    there = x.to(f"{KIND}:0")
    close(net(there).cpu(), mlp(x).detach())


def test_rows_that_are_there_stay_there(net, mlp):
    x = torch.rand(5000, 64)
    y = net(x.to(f"{KIND}:0"))
    assert y.device == torch.device(f"{KIND}:0")
    close(y.cpu(), mlp(x).detach())


def test_work_on_a_side_stream_is_waited_for(net, mlp):
    module = torch.get_device_module(KIND)
    side = module.Stream()
    x = torch.rand(20_000, 64)
    wanted = mlp(x).detach()
    for _ in range(20):
        with module.stream(side):
            there = torch.zeros(20_000, 64, device=f"{KIND}:0")
            torch.rand(3000, 3000, device=KIND) @ torch.rand(3000, 3000, device=KIND)
            there.copy_(x.pin_memory(), non_blocking=True)
            close(net(there).cpu(), wanted)


def test_registered_arrays(both_file, mlp):
    x = np.random.default_rng(0).random((400_000, 64), dtype=np.float32)
    out = np.empty_like(x)
    locked = [torchspan.register(each) for each in (x, out)]
    try:
        with torchspan.load(both_file, devices=f"{KIND}:0") as net:
            net(x, out=out)
    finally:
        for each in (x, out):
            torchspan.unregister(each)
    assert all(locked) == (KIND == "cuda")
    close(torch.from_numpy(out), mlp(torch.from_numpy(x)).detach())


@pytest.mark.parametrize("precision", ["bfloat16", "tf32"])
def test_lower_precision(both_file, mlp, precision):
    x = torch.rand(1000, 64)
    wanted = mlp(x).detach()
    before = torch.backends.cuda.matmul.fp32_precision
    with torchspan.load(both_file, devices=f"{KIND}:0", precision=precision) as net:
        y = net(x)
    assert y.dtype == torch.float32
    assert float((y - wanted).norm() / wanted.norm()) < 3e-2
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_modules_and_torchscript(model_file, mlp):
    x = torch.rand(1001, 64)
    for source in (mlp, model_file("script")):
        with torchspan.load(source, devices=f"{KIND}:0,{KIND}:0") as net:
            close(net(x), mlp(x).detach())


def test_too_little_memory_on_the_device(both_file):
    module = torch.nn.Linear(64, 1 << 22)
    with torchspan.load(module, devices=f"{KIND}:0") as net:
        with pytest.raises(torchspan.DeviceMemoryError, match=f"{KIND}:0 has too little memory"):
            net(torch.rand(1 << 22, 64))
        assert net(torch.rand(2, 64)).shape == (2, 1 << 22)


def test_pretending_two_is_the_real_one_twice(both_file, mlp, monkeypatch):
    monkeypatch.setenv(f"TORCHSPAN_PRETEND_{KIND.upper()}", "2")
    with torchspan.load(both_file, devices=KIND) as net:
        assert [each.backing for each in net.devices] == [f"{KIND}:0"] * 2
        x = torch.rand(9, 64)
        close(net(x), mlp(x).detach())
