# SPDX-License-Identifier: MIT
import pytest
import torch
from torch import nn

import torchspan
from torchspan import ModelFileError, _log
from torchspan._model_file import gains

CPU = torchspan.devices("cpu")[0]
BFLOAT16 = pytest.mark.skipif(
    not gains(CPU, "bfloat16"), reason="this CPU has no bfloat16 arithmetic"
)


@pytest.fixture
def said(monkeypatch, capfd):
    """What was said on stderr, with what was said before forgotten."""
    monkeypatch.setattr(_log, "_said", set())
    return lambda: capfd.readouterr().err


@BFLOAT16
def test_bfloat16_of_a_file_is_compiled_once_and_says_its_error(mlp_file, mlp, said):
    x = torch.rand(50, 64)
    wanted = mlp(x).detach()
    with torchspan.load(mlp_file, devices="cpu:0,cpu:1", precision="bfloat16") as net:
        first = said()
        y = net(x)
    assert "holds no build cpu-" in first and "--precision bfloat16" in first
    assert "bfloat16 on cpu:0: expect a relative error of about" in first
    assert y.dtype == torch.float32
    error = float((y - wanted).norm() / wanted.norm())
    assert 1e-5 < error < 3e-2
    _log._said.clear()
    torchspan.load(mlp_file, devices="cpu", precision="bfloat16").close()
    again = said()
    assert "compiling" not in again and "expect a relative error" in again


@BFLOAT16
def test_bfloat16_of_a_module_measures_its_error_on_the_first_call(mlp, said):
    x = torch.rand(70, 64)
    net = torchspan.load(mlp, devices="cpu", precision="bfloat16")
    y = net(x)
    assert "(2-norm, measured on 64 rows)" in said()
    assert y.dtype == torch.float32
    wanted = mlp(x).detach()
    assert 1e-5 < float((y - wanted).norm() / wanted.norm()) < 3e-2
    net(x)
    assert said() == ""


SCRIPT = """
import torch
scale = torch.full((), 2.0)
def forward(x, y):
    return {"sum": x + y * scale, "x": x}
"""


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_a_script(tmp_path, devices):
    net = torchspan.load(write(tmp_path / "model.py", SCRIPT), devices=devices)
    x, y = torch.rand(5, 2), torch.rand(5, 2)
    got = net(x, y)
    torch.testing.assert_close(got["sum"], x + 2 * y)
    torch.testing.assert_close(got["x"], x)


def test_a_script_of_pytorch_fortran(tmp_path):
    text = "def ftn_pytorch_forward(inputs):\n    return inputs[0] * len(inputs)\n"
    net = torchspan.load(write(tmp_path / "model.py", text), devices="cpu:0,cpu:1")
    x = torch.rand(5, 2)
    torch.testing.assert_close(net(x, x, x), 3 * x)


def test_scripts_of_one_name_are_told_apart(tmp_path):
    nets = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = f"FACTOR = {number}\ndef forward(x):\n    return x * FACTOR\n"
        nets.append(torchspan.load(write(folder / "model.py", text), devices="cpu"))
    x = torch.rand(3, 2)
    assert [float(net(x)[0, 0] / x[0, 0]) for net in nets] == [1.0, 2.0]


def test_a_script_may_import_what_lies_beside_it_later(tmp_path):
    write(tmp_path / "beside_the_script.py", "FACTOR = 5.0\n")
    text = "def forward(x):\n    from beside_the_script import FACTOR\n    return x * FACTOR\n"
    net = torchspan.load(write(tmp_path / "model.py", text), devices="cpu")
    torch.testing.assert_close(net(torch.ones(2, 2)), torch.full((2, 2), 5.0))


def test_a_script_may_use_dataclasses(tmp_path):
    text = """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Options:
    factor: float = 3.0
def forward(x):
    return x * Options().factor
"""
    net = torchspan.load(write(tmp_path / "model.py", text), devices="cpu")
    torch.testing.assert_close(net(torch.ones(2, 2)), torch.full((2, 2), 3.0))


def test_a_script_that_fails_while_it_is_loaded(tmp_path):
    path = write(tmp_path / "model.py", "import nothing_like_it\ndef forward(x):\n    return x\n")
    with pytest.raises(ModelFileError, match="failed while it was loaded: ModuleNotFoundError"):
        torchspan.load(path, devices="cpu")


def test_a_script_runs_once_a_device(tmp_path):
    text = "token = object()\ndef forward(x):\n    return x + id(token) % 65521\n"
    net = torchspan.load(write(tmp_path / "model.py", text), devices="cpu:0,cpu:1")
    first, second = net(torch.zeros(2, 1)).flatten().tolist()
    assert first != second


def test_a_torchscript_file_that_torch_cannot_read(tmp_path, model_file):
    import zipfile

    path = tmp_path / "odd.pt"
    with zipfile.ZipFile(model_file("script")) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) if "constants.pkl" not in name else b"no")
    with pytest.raises(ModelFileError, match="cannot be read"):
        torchspan.load(path, devices="cpu")


def test_a_module_with_optional_arguments_takes_as_many_as_it_is_given():
    class Optional(nn.Module):
        def forward(self, x, y=None):
            return x if y is None else x + y

    net = torchspan.load(Optional(), devices="cpu:0,cpu:1")
    x = torch.rand(4, 2)
    torch.testing.assert_close(net(x), x)
    torch.testing.assert_close(net(x, x), 2 * x)
