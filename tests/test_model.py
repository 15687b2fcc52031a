# SPDX-License-Identifier: MIT
import gc
import os
import resource
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import torchspan
from tests.zoo import ZOO
from torchspan import ArgumentError, DeviceMemoryError, ModelError, ModelFileError

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
        ((torch.rand(2, 64).to_sparse(),), "layout torch.sparse_coo"),
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


KINDS = {
    "pt2": lambda file: torchspan.load(file("mlp"), devices="cpu:0,cpu:1"),
    "eager pt2": lambda file: torchspan.load(file("mlp"), devices="cpu:0,cpu:1", compile=False),
    "pt": lambda file: torchspan.load(file("script"), devices="cpu:0,cpu:1"),
    "module": lambda file: torchspan.load(ZOO["mlp"].make(), devices="cpu:0,cpu:1"),
    "one device": lambda file: torchspan.load(ZOO["mlp"].make(), devices="cpu"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 50])
def test_every_kind_of_model(model_file, mlp, kind, rows):
    x = torch.rand(rows, 64)
    with KINDS[kind](model_file) as net:
        torch.testing.assert_close(net(x), mlp(x).detach())
        out = torch.empty(rows, 64)
        net(x, out=out)
        torch.testing.assert_close(out, mlp(x).detach())
        assert isinstance(net(x.numpy()), np.ndarray)


def test_a_file_of_plain_pytorch(tmp_path, mlp):
    batch = torch.export.Dim("n")
    program = torch.export.export(mlp, (torch.rand(7, 64),), dynamic_shapes=({0: batch},))
    torch.export.save(program, tmp_path / "plain.pt2")
    with torchspan.load(tmp_path / "plain.pt2", devices="cpu:0,cpu:1", compile=False) as net:
        assert str(net.description.inputs[0]) == "input: float32 (batch, 64)"
        x = torch.rand(9, 64)
        torch.testing.assert_close(net(x), mlp(x).detach())
        with pytest.raises(ArgumentError, match="takes"):
            net(torch.rand(9, 63))


def test_a_module_is_copied_as_it_is_and_evaluates():
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.9)).train()
    net = torchspan.load(module, devices="cpu")
    x = torch.rand(5, 3)
    wanted = module[0](x).detach()
    with torch.no_grad():
        module[0].weight.zero_()
    torch.testing.assert_close(net(x), wanted)
    assert module.training


def test_results_in_tuples_and_dicts_of_modules():
    class Both(nn.Module):
        def forward(self, x, y):
            return (x + y, x - y)

    x, y = torch.rand(5, 2), torch.rand(5, 2)
    net = torchspan.load(Both(), devices="cpu:0,cpu:1")
    got = net(x, y)
    assert isinstance(got, tuple)
    torch.testing.assert_close(got, (x + y, x - y))
    with pytest.raises(ArgumentError, match="1 input was given; this model takes 2"):
        net(x)
    with pytest.raises(ArgumentError, match="input 'y' has 4 rows; the inputs before it have 5"):
        net(x, y[:4])


def test_shared_inputs_are_named_or_numbered():
    class Scale(nn.Module):
        def forward(self, x, grid):
            return x * grid

    x, grid = torch.rand(5, 2), torch.rand(2)
    for shared in (("grid",), (1,)):
        net = torchspan.load(Scale(), devices="cpu:0,cpu:1", shared=shared)
        torch.testing.assert_close(net(x, grid), x * grid)


class Total(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


def test_results_without_rows_cannot_be_gathered():
    net = torchspan.load(Total(), devices="cpu:0,cpu:1")
    with pytest.raises(ModelError, match="cannot be gathered row by row.*split=False"):
        net(torch.rand(5, 2))
    whole = torchspan.load(Total(), devices="cpu:0,cpu:1", split=False)
    x = torch.rand(5, 2)
    torch.testing.assert_close(whole(x), x.sum())


@pytest.mark.parametrize("devices", DEVICES[:2])
def test_an_exception_inside_the_model(devices):
    class Failing(nn.Module):
        def forward(self, x):
            if x.shape[0] > 2 or float(x.sum()) < 0:
                raise KeyError("nothing like it")
            return x

    net = torchspan.load(Failing(), devices=devices)
    with pytest.raises(ModelError, match=r"failed on cpu:0: KeyError: 'nothing like it'") as caught:
        net(torch.rand(9, 2))
    assert isinstance(caught.value.__cause__, KeyError)
    assert net(torch.rand(2, 2)).shape == (2, 2)
    with pytest.raises(ModelError):
        net.submit(-torch.rand(2, 2)).result(60)


def test_results_that_are_no_tensors():
    class Odd(nn.Module):
        def forward(self, x):
            return x, 3

    with pytest.raises(ModelError, match="returned a tuple of Tensor, int"):
        torchspan.load(Odd(), devices="cpu")(torch.rand(2, 2))


def test_too_little_memory():
    class Huge(nn.Module):
        def forward(self, x):
            return x.new_empty(1 << 60)

    net = torchspan.load(Huge(), devices="cpu")
    with pytest.raises(DeviceMemoryError, match="cpu:0 has too little memory for 2 rows"):
        net(torch.rand(2, 2))
    with pytest.raises(MemoryError):
        net(torch.rand(2, 2))


def test_bfloat16_results_have_no_numpy_form():
    net = torchspan.load(nn.Identity(), devices="cpu")
    assert net(torch.rand(2, 2).bfloat16()).dtype == torch.bfloat16

    class Lower(nn.Module):
        def forward(self, x):
            return x.bfloat16()

    with pytest.raises(ArgumentError, match="gives bfloat16, which numpy has not"):
        torchspan.load(Lower(), devices="cpu")(np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("devices", DEVICES[:2])
def test_after_closing(mlp_file, devices):
    net = torchspan.load(mlp_file, devices=devices)
    future = net.submit(torch.rand(1000, 64))
    net.close()
    assert future.result(60).shape == (1000, 64)
    net.close()
    for call in (net, net.submit):
        with pytest.raises(ModelError, match="the model is closed"):
            call(torch.rand(2, 64))


def test_a_model_that_is_dropped_lets_go_of_its_threads(mlp_file):
    before = threading.active_count()
    net = torchspan.load(mlp_file, devices="cpu:0,cpu:1,cpu:2")
    net(torch.rand(9, 64))
    assert threading.active_count() == before + 3
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before


FORKED = """
import os, sys, torch, torchspan
net = torchspan.load(torch.nn.Linear(2, 2), devices="cpu:0,cpu:1")
net(torch.rand(4, 2))
if os.fork() == 0:
    try:
        net(torch.rand(4, 2))
    except torchspan.ModelError as error:
        print(error, flush=True)
    os._exit(0)
print(os.wait()[1], net(torch.rand(4, 2)).shape)
"""


def test_a_forked_child_is_told_and_does_not_hang():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "before this process was forked" in done.stdout
    assert "0 torch.Size([4, 2])" in done.stdout


def test_the_callers_thread_count_is_left_alone(mlp_file):
    before = torch.get_num_threads()
    with torchspan.load(mlp_file, devices="cpu:0,cpu:1") as net:
        net(torch.rand(9, 64))
        assert torch.get_num_threads() == before
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert seen == [before]


def test_the_random_state_is_left_alone(mlp_file):
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    torchspan.load(mlp_file, devices="cpu:0,cpu:1")(torch.zeros(9, 64))
    assert torch.equal(torch.rand(4), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("devices", DEVICES[:2])
def test_a_hundred_thousand_calls_keep_memory_flat(mlp_file, devices):
    calls = 100_000 if devices == "cpu" else 5_000
    x = torch.rand(2, 64)
    with torchspan.load(mlp_file, devices=devices) as net:
        for _ in range(2000):
            net(x)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(calls):
            net(x)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 4096, f"{grown} kB for {calls} calls"


def test_precision_that_is_not_known(mlp_file):
    with pytest.raises(ArgumentError, match="precision 'int8' is not known"):
        torchspan.load(mlp_file, precision="int8")


def test_precision_is_for_float32(model_file):
    with pytest.raises(ArgumentError, match="for models that take float32; this one takes float64"):
        torchspan.load(model_file("mixing"), devices="cpu", precision="bfloat16")


def test_precision_where_nothing_is_gained(mlp_file, mlp, capfd, monkeypatch):
    from torchspan import _log

    monkeypatch.setattr(_log, "_said", set())
    net = torchspan.load(mlp_file, devices="cpu", precision="tf32")
    assert "cpu:0 gains nothing from tf32" in capfd.readouterr().err
    x = torch.rand(3, 64)
    assert torch.equal(net(x), torchspan.load(mlp_file, devices="cpu")(x))


def test_a_file_that_is_cut_after_it_was_described(tmp_path, mlp_file):
    path = tmp_path / "net.pt2"
    path.write_bytes(mlp_file.read_bytes())
    os.truncate(path, 1000)
    with pytest.raises(ModelFileError, match="truncated"):
        torchspan.load(path)


def test_pretended_gpus_give_the_same(mlp_file, mlp, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    with torchspan.load(mlp_file, devices="cuda") as net:
        assert [str(each) for each in net.devices] == ["cuda:0", "cuda:1"]
        x = torch.rand(5, 64)
        torch.testing.assert_close(net(x), mlp(x).detach())
