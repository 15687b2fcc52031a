# SPDX-License-Identifier: MIT
"""Every kind of model, and what each returns."""

import os

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import torchspan
from tests.zoo import ZOO
from torchspan import ArgumentError, ModelError, ModelFileError

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


def test_what_a_file_says_of_its_inputs_is_not_overruled(mlp_file):
    with pytest.raises(ArgumentError, match="shared has 'x', which this file was saved with rows"):
        torchspan.load(mlp_file, devices="cpu", shared=("x",))


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


class Constant(nn.Module):
    """Gives as many rows as it was made with, whatever it is given."""

    def __init__(self, rows: int):
        super().__init__()
        self.register_buffer("rows", torch.rand(rows, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.rows * 2


@pytest.mark.parametrize("constant", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.parametrize("script", [False, True])
def test_a_constant_as_long_as_the_batch_is_not_taken_for_rows(tmp_path, constant, rows, script):
    model = Constant(constant)
    if script:
        torchspan.save(model, tmp_path / "net.pt", torch.rand(1, 2))
    source = tmp_path / "net.pt" if script else model
    with (
        torchspan.load(source, devices="cpu:0,cpu:1") as net,
        pytest.raises(ModelError, match="cannot be gathered row by row"),
    ):
        net(torch.rand(rows, 2))
    for options in ({"devices": "cpu"}, {"devices": "cpu:0,cpu:1", "split": False}):
        with torchspan.load(source, **options) as net:
            torch.testing.assert_close(net(torch.rand(rows, 2)), model.rows * 2)


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_one_row_teaches_nothing_wrong_about_the_next_call(devices):
    out = torch.empty(1, 2)
    with torchspan.load(Constant(1), devices=devices) as net:
        net(torch.rand(1, 2), out=out)
        assert torch.equal(out, net(torch.rand(1, 2)))
        if devices != "cpu":
            with pytest.raises(ModelError, match="cannot be gathered row by row"):
                net(torch.rand(4, 2))


@pytest.mark.parametrize(
    "options", [{"devices": "cpu"}, {"devices": "cpu:0,cpu:1", "split": False}]
)
def test_results_without_rows_land_in_the_callers_memory(options):
    x, out = torch.rand(5, 2), torch.empty(())
    with torchspan.load(Total(), **options) as net:
        assert net(x, out=out) is out
        torch.testing.assert_close(out, x.sum())
        with pytest.raises(ArgumentError, match=r"out has dtype float32 and shape \(5,\)"):
            net(x, out=torch.empty(5))


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
