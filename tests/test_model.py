# SPDX-License-Identifier: MIT
"""Calls of a model on one and several devices: values, memory, checks."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torchspan
from tests.zoo import ZOO
from torchspan import ArgumentError

DEVICES = ("cpu", "cpu:0,cpu:1", "cpu:0,cpu:0,cpu:3")


@pytest.fixture(scope="module", params=DEVICES)
def net(request, mlp_file):
    with torchspan.load(mlp_file, devices=request.param) as opened:
        yield opened


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.integers(0, 70), seed=st.integers(0, 9))
def test_every_batch_gives_what_the_module_gives_in_order(net, mlp, rows, seed):
    x = torch.rand(rows, 64, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        torch.testing.assert_close(net(x), mlp(x))


def test_large_batches_run_in_chunks_and_give_the_same(net, mlp):
    x = torch.rand(30_011, 64)
    with torch.no_grad():
        torch.testing.assert_close(net(x), mlp(x), rtol=1e-4, atol=1e-5)


def test_numpy_in_numpy_out(net, mlp):
    x = np.random.default_rng(1).random((9, 64), dtype=np.float32)
    y = net(x)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32
    np.testing.assert_allclose(y, mlp(torch.from_numpy(x)).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "lay",
    [
        lambda x: x[::2],
        lambda x: x[::-1],
        lambda x: np.asfortranarray(x),
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.lib.stride_tricks.as_strided(x, (3, 64), (x.strides[0], x.strides[1])),
    ],
    ids=["every other", "backwards", "fortran", "broadcast", "strided"],
)
def test_layouts_are_copied_and_never_misread(net, mlp, lay):
    x = lay(np.random.default_rng(2).random((10, 64), dtype=np.float32))
    wanted = mlp(torch.from_numpy(np.ascontiguousarray(x))).detach().numpy()
    np.testing.assert_allclose(net(x), wanted, atol=1e-5)
    if x.strides[0] > 0:
        tensor = torch.from_numpy(x.copy(order="K"))
        np.testing.assert_allclose(net(tensor).numpy(), wanted, atol=1e-5)


def test_transposed_tensors(net, mlp):
    x = torch.rand(64, 12).t()
    torch.testing.assert_close(net(x), mlp(x).detach())


def test_read_only_arrays_are_read_without_a_copy_or_a_warning(net):
    x = np.zeros((4, 64), np.float32)
    wanted = net(x)
    x.flags.writeable = False
    np.testing.assert_array_equal(net(x), wanted)
    assert not x.flags.writeable


def test_results_land_in_the_callers_memory(net, mlp):
    x = torch.rand(11, 64)
    out = torch.full((11, 64), torch.nan)
    assert net(x, out=out) is out
    torch.testing.assert_close(out, mlp(x).detach())
    wide = torch.full((11, 128), torch.nan)
    net(x, out=wide[:, 1::2])
    torch.testing.assert_close(wide[:, 1::2], mlp(x).detach())
    assert wide[:, 0::2].isnan().all()
    array = np.full((11, 64), np.nan, np.float32)
    assert net(x.numpy(), out=array) is array
    np.testing.assert_allclose(array, out.numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (
            torch.empty(11, 63),
            r"out has dtype float32 and shape \(11, 63\); the result has float32",
        ),
        (torch.empty(11, 64, dtype=torch.float64), "out has dtype float64"),
        ((torch.empty(11, 64),) * 2, "out has 2 arrays; this model gives 1 output"),
        ([1.0], "out is a float"),
    ],
)
def test_a_place_for_results_that_does_not_fit(net, out, words):
    with pytest.raises(ArgumentError, match=words):
        net(torch.rand(11, 64), out=out)


def test_a_read_only_place_for_results(net):
    out = np.empty((2, 64), np.float32)
    out.flags.writeable = False
    with pytest.raises(ArgumentError, match="out is read-only"):
        net(np.zeros((2, 64), np.float32), out=out)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ((torch.rand(2, 64).double(),), "input 'x' has dtype float64; this model takes float32"),
        ((torch.rand(2, 63),), r"input 'x' has shape \(2, 63\); this model takes \(batch, 64\)"),
        ((torch.rand(64),), r"input 'x' has shape \(64,\)"),
        ((), r"0 inputs were given; this model takes 1: x: float32 \(batch, 64\)"),
        ((torch.rand(2, 64), torch.rand(2, 64)), "2 inputs were given; this model takes 1"),
        (([[1.0] * 64],), "input 'x' is a list; give a torch tensor or a numpy array"),
        ((np.zeros((2, 64), "O"),), "input 'x' has dtype object, which torch has not"),
        ((np.zeros((2, 64), ">f4"),), "foreign byte order.*newbyteorder"),
        ((torch.rand(2, 64).to_sparse(),), "input 'x' has layout torch.sparse_coo.*to_dense"),
    ],
)
def test_inputs_that_do_not_fit_are_named_and_the_model_goes_on(net, inputs, words):
    with pytest.raises(ArgumentError, match=words):
        net(*inputs)
    with pytest.raises(ArgumentError, match=words):
        net.submit(*inputs)
    assert net(torch.rand(2, 64)).shape == (2, 64)


def test_futures_come_back_in_their_own_time(net, mlp):
    inputs = [torch.rand(rows, 64) for rows in (1, 50, 3, 0, 20)]
    futures = [net.submit(x) for x in inputs]
    for x, future in zip(inputs, futures, strict=True):
        torch.testing.assert_close(future.result(60), mlp(x).detach())


def test_gradients_are_left_alone(net):
    x = torch.rand(3, 64, requires_grad=True)
    y = net(x)
    assert not y.requires_grad and torch.is_grad_enabled() and x.grad is None
    (y * 2).add_(1)


def test_ten_threads_at_once(net, mlp):
    x = [torch.rand(rows + 1, 64) for rows in range(10)]
    wanted = [mlp(each).detach() for each in x]
    wrong = []

    def call(index):
        for _ in range(20):
            if not torch.allclose(net(x[index]), wanted[index], atol=1e-5):
                wrong.append(index)

    threads = [threading.Thread(target=call, args=(index,)) for index in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


@pytest.fixture(scope="module", params=DEVICES)
def columns(request, model_file):
    with torchspan.load(model_file("columns"), devices=request.param) as opened:
        yield opened


@pytest.mark.parametrize(("rows", "ny"), [(0, 8), (1, 3), (2, 8), (5, 11), (17, 4)])
def test_several_inputs_and_outputs(columns, rows, ny):
    module = ZOO["columns"].make()
    inputs = torch.rand(rows, 2, ny, 6), torch.rand(rows, 3), torch.rand(6)
    got = columns(*inputs)
    assert list(got) == ["tendency", "score", "kind"]
    with torch.no_grad():
        for name, wanted in module(*inputs).items():
            torch.testing.assert_close(got[name], wanted, rtol=1e-4, atol=1e-5)


def test_several_results_land_in_the_callers_memory(columns):
    inputs = torch.rand(5, 2, 7, 6), torch.rand(5, 3), torch.rand(6)
    wanted = columns(*inputs)
    out = {name: torch.empty_like(each) for name, each in wanted.items()}
    columns(*inputs, out=out)
    for name, each in wanted.items():
        torch.testing.assert_close(out[name], each)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((4, 2, 7, 6), (5, 3), (6,)), r"'forcing' has 5 in its dimension 0 \(batch\).*has 4"),
        (((4, 2, 7, 6), (4, 3), (5,)), "'grid' has shape"),
        (((4, 3, 7, 6), (4, 3), (6,)), r"takes \(batch, 2, ny, 6\)"),
    ],
)
def test_sizes_must_agree_between_inputs(columns, shapes, words):
    with pytest.raises(ArgumentError, match=words):
        columns(*(torch.rand(shape) for shape in shapes))


@pytest.mark.parametrize("devices", DEVICES)
def test_rows_that_depend_on_each_other_stay_together(model_file, devices):
    net = torchspan.load(model_file("mixing"), devices=devices)
    for rows in (1, 2, 5, 3000):
        x = torch.rand(rows, 3, dtype=torch.float64)
        torch.testing.assert_close(net(x), x - x.mean(0))
