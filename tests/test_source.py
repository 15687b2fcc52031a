# SPDX-License-Identifier: MIT
import sys

import pytest
from torch import nn

from torchspan import ArgumentError
from torchspan._source import load_source, parse_argument

NETS = """
import torch
from torch import nn
from torch.nn import Linear
from beside import WIDTH

class Net(nn.Module):
    def __init__(self, hidden, scale=1.0):
        super().__init__()
        self.inner = nn.Linear(WIDTH, hidden)
        self.scale = scale

class Plain(nn.Module):
    pass

class NoModel:
    pass

def make(hidden=3):
    return Net(hidden)

def wrong():
    return 5

def broken():
    raise RuntimeError("no such luck")

ready = Plain()
NUMBER = 7
_hidden = Plain()
"""


@pytest.fixture
def nets(tmp_path, own_modules, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "beside.py").write_text("WIDTH = 4\n")
    return tmp_path


def refusal(text, *arguments):
    with pytest.raises(ArgumentError) as caught:
        load_source(text, arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_class_a_function_and_a_module(nets):
    found = load_source("nets.py:Net", [(None, 6), ("scale", 2.5)])
    assert (found.inner.out_features, found.scale) == (6, 2.5)
    assert load_source("nets.py:make", []).inner.out_features == 3
    assert load_source("nets.py:make", [("hidden", 9)]).inner.out_features == 9
    assert type(load_source("nets.py:ready", [])).__name__ == "Plain"


def test_a_file_elsewhere_finds_what_lies_beside_it(nets, monkeypatch):
    (nets / "empty").mkdir()
    monkeypatch.chdir(nets / "empty")
    assert load_source("../nets.py:make", []).inner.in_features == 4
    assert load_source(f"{nets}/nets.py:make", []).inner.in_features == 4


def test_a_module_of_a_package(nets):
    (nets / "package").mkdir()
    (nets / "package" / "__init__.py").write_text("")
    (nets / "package" / "inner.py").write_text("from nets import Plain as Deep\n")
    assert type(load_source("package.inner:Deep", [])).__name__ == "Plain"
    assert isinstance(load_source("torch.nn:Linear", [(None, 2), (None, 3)]), nn.Linear)


def test_a_file_that_is_called_like_a_loaded_module(nets):
    (nets / "json.py").write_text(NETS)
    assert load_source("json.py:make", []).inner.out_features == 3
    assert hasattr(sys.modules["json"], "dumps")


@pytest.mark.parametrize("text", ["nets.py", "nets.py:", ":Net", "nets"])
def test_a_source_without_a_name(nets, text):
    assert "does not say what to export; write 'file.py:ClassName'" in refusal(text)


def test_a_name_that_is_not_there_lists_those_that_are(nets):
    listed = "It defines classes (Net, Plain), functions (make, wrong, broken), modules (ready)."
    assert refusal("nets.py:Nett") == f"nets.py defines no 'Nett'. {listed}"
    assert refusal("nets.py").endswith(listed)
    (nets / "none.py").write_text("x = 1\n")
    assert refusal("none.py:Net") == "none.py defines no 'Net'. It defines no torch.nn.Module."


def test_a_name_that_is_no_model(nets):
    assert "nets.py:NUMBER is a int; name a torch.nn.Module" in refusal("nets.py:NUMBER")
    assert "nets.py:NoModel gave a NoModel, no torch.nn.Module" in refusal("nets.py:NoModel")
    assert "nets.py:wrong gave a int" in refusal("nets.py:wrong")


def test_arguments_that_do_not_fit(nets):
    message = refusal("nets.py:Net")
    assert "nets.py:Net(hidden, scale=1.0) cannot be called so: missing a required" in message
    assert "Give its arguments with --arg VALUE or --arg name=VALUE" in message
    assert "got an unexpected keyword argument 'depth'" in refusal("nets.py:make", ("depth", 2))
    assert "is a module already, so it takes no --arg" in refusal("nets.py:ready", (None, 2))


def test_a_constructor_that_fails_says_where(nets):
    message = refusal("nets.py:broken")
    assert message.startswith("nets.py:broken failed: RuntimeError: no such luck (nets.py, line ")
    assert "TypeError" in refusal("nets.py:Net", (None, "wide"))


def test_files_and_modules_that_are_not_there(nets):
    assert refusal("absent.py:Net") == "there is no file absent.py."
    assert "there is no module 'absent' on Python's path" in refusal("absent:Net")
    assert "there is no module 'torch.absent'" in refusal("torch.absent:Net")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import nothing_of_the_kind\n", "ModuleNotFoundError: No module named 'nothing_of"),
        ("x = 1 / 0\n", "ZeroDivisionError: division by zero (bad.py, line 1)"),
        ("def f(:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
@pytest.mark.parametrize("name", ["bad.py", "bad"])
def test_a_file_that_cannot_be_imported(nets, code, text, name):
    (nets / "bad.py").write_text(code)
    message = refusal(f"{name}:Net")
    assert message.startswith(f"{name} cannot be imported: ")
    assert text in message
    assert "bad" not in sys.modules


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("64", (None, 64)),
        ("0.5", (None, 0.5)),
        ("relu", (None, "relu")),
        ("hidden=64", ("hidden", 64)),
        ("sizes=[5, 5]", ("sizes", [5, 5])),
        ("bias=False", ("bias", False)),
        ("mode=same", ("mode", "same")),
        ("'a=b'", (None, "a=b")),
        ("empty=", ("empty", "")),
        ("-1", (None, -1)),
    ],
)
def test_arguments_are_python_values_or_text(text, parsed):
    assert parse_argument(text) == parsed
