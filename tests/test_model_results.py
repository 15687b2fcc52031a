# SPDX-License-Identifier: MIT
"""What a call gives back, what memory it writes to, and what it leaves alone."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import torchspan
from tests.zoo import ZOO
from torchspan import ModelError

DEVICES = ("cpu", "cpu:0,cpu:1", "cpu:0,cpu:0,cpu:3")


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("rows", [1, 5, 6, 12, 60_000])
def test_fourier_transforms_and_results_without_a_batch(model_file, devices, rows):
    x, grid = torch.rand(rows, 6), torch.rand(6)
    with torchspan.load(model_file("spectral"), devices=devices) as net, torch.no_grad():
        got, wanted = net(x, grid), ZOO["spectral"].make()(x, grid)
    torch.testing.assert_close(got, wanted)


def test_a_build_that_fails_gives_its_reason(mlp_file):
    with FakeTensorMode():
        x = torch.rand(2, 64)
    with (
        torchspan.load(mlp_file, devices="cpu") as net,
        pytest.raises(ModelError, match="the model failed: .*API call failed"),
    ):
        net(x)


@pytest.mark.parametrize("devices", DEVICES)
def test_inference_mode_of_the_caller(mlp_file, mlp, devices):
    with torchspan.load(mlp_file, devices=devices) as net:
        with torch.inference_mode():
            x = torch.rand(3000, 64)
            y = net(x)
            torch.testing.assert_close(y, mlp(x), rtol=1e-4, atol=1e-5)
            out = torch.empty(3000, 64)
        net(x, out=out)
        torch.testing.assert_close(out, y)
