# SPDX-License-Identifier: MIT
"""What a call gives back, what memory it writes to, and what it leaves alone."""

import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import torchspan
from tests.zoo import ZOO
from torchspan import ArgumentError, ModelError

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


class Shift(nn.Module):
    def forward(self, x):
        return {"up": x + 1, "down": x - 1}


@pytest.mark.parametrize("devices", DEVICES)
def test_places_for_results_go_by_name(devices):
    x = torch.rand(7, 2)
    out = {"down": torch.empty(7, 2), "up": torch.empty(7, 2)}
    with torchspan.load(Shift(), devices=devices) as net:
        net(x, out=out)
        torch.testing.assert_close(out, {"down": x - 1, "up": x + 1})
        with pytest.raises(ArgumentError, match="out has 'up', 'left'; this model gives 'up', 'do"):
            net(x, out={"up": x, "left": x})
        table = torch.empty(7, 4)
        net(x, out=(table[:, ::2], table[:, 1::2]))
        torch.testing.assert_close(table[:, 1::2], x - 1)
        with pytest.raises(ArgumentError, match=r"out\[1\] has several results in the same memory"):
            net(x, out=(x, x))


@pytest.mark.parametrize("devices", DEVICES)
def test_places_for_results_that_fold_rows_together(mlp_file, devices):
    with (
        torchspan.load(mlp_file, devices=devices) as net,
        pytest.raises(ArgumentError, match="several results in the same memory"),
    ):
        net(torch.rand(5, 64), out=torch.empty(1, 64).expand(5, 64))


@pytest.mark.parametrize("devices", DEVICES)
def test_results_may_land_in_the_inputs_memory(mlp_file, mlp, devices):
    rows = 20_000
    with torchspan.load(mlp_file, devices=devices) as net:
        for first in (0, 1, 4000):
            memory = torch.rand(rows + 4000, 64)
            x, out = memory[:rows], memory[first : first + rows]
            wanted = mlp(x).detach()
            net(x, out=out)
            torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-5)


class Forces(nn.Module):
    """As interatomic potentials are: the result is a gradient with respect to the input."""

    def forward(self, x):
        with torch.enable_grad():
            x.requires_grad_()
            energy = (x**3).sum()
            return torch.autograd.grad(energy, x, create_graph=True)[0]


@pytest.mark.parametrize("devices", DEVICES)
def test_models_that_differentiate_inside(devices):
    x = torch.rand(6, 2)
    with torchspan.load(Forces(), devices=devices) as net:
        y = net(x)
        assert not y.requires_grad and not x.requires_grad
        torch.testing.assert_close(y, 3 * x**2)
        assert isinstance(net(x.numpy()), np.ndarray)


class Adding(nn.Module):
    def forward(self, x):
        return x.add_(1)


@pytest.mark.parametrize("devices", DEVICES)
def test_modules_that_write_to_their_input_do_so_once(devices):
    x = torch.zeros(6, 2)
    with torchspan.load(Adding(), devices=devices) as net:
        assert torch.equal(net(x), torch.ones(6, 2))
        assert torch.equal(x, torch.ones(6, 2))
        frozen = np.zeros((6, 2), np.float32)
        frozen.flags.writeable = False
        np.testing.assert_array_equal(net(frozen), np.ones((6, 2)))
        assert not frozen.any()


def test_a_result_is_never_a_writable_view_of_a_read_only_array(model_file):
    x, grid = np.ones((5, 6), np.float32), np.ones(6, np.float32)
    x.flags.writeable = False
    with torchspan.load(model_file("spectral"), devices="cpu") as net:
        same = net(x, grid)[3]
    same[:] = 2
    assert x.all() and (x == 1).all()


def test_conjugated_results_as_arrays():
    class Conjugate(nn.Module):
        def forward(self, x):
            return x.conj()

    x = np.full((2, 2), 1 + 2j, np.complex64)
    np.testing.assert_array_equal(torchspan.load(Conjugate(), devices="cpu")(x), x.conj())


def test_masked_values_are_refused():
    x = np.ma.masked_array(np.ones((2, 2), np.float32), [[True, False], [False, False]])
    net = torchspan.load(nn.Identity(), devices="cpu")
    with pytest.raises(ArgumentError, match="input 'input' has masked values.*filled"):
        net(x)
    x.mask = False
    assert net(x).shape == (2, 2)


@pytest.mark.parametrize("shared", ["grid", ("gird",), (2,)])
def test_shared_inputs_that_are_not_there(shared):
    class Scale(nn.Module):
        def forward(self, x, grid):
            return x * grid

    with pytest.raises(ArgumentError, match="shared has .*, but the inputs are 'x', 'grid'"):
        torchspan.load(Scale(), devices="cpu", shared=shared)


def test_a_call_from_a_done_callback_is_refused_and_does_not_hang():
    told, done = [], threading.Event()

    def again(future):
        try:
            net(future.result())
        except ModelError as error:
            told.append(str(error))
        net.submit(future.result()).add_done_callback(lambda _: done.set())

    with torchspan.load(nn.Linear(2, 2), devices="cpu:0,cpu:1") as net:
        # Long enough for the callback to be there before the parts are done.
        net.submit(torch.rand(2_000_000, 2)).add_done_callback(again)
        assert done.wait(30)
    assert "called from its own worker" in told[0]
