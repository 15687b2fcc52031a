# SPDX-License-Identifier: MIT
import pytest
import torch
from safetensors.torch import save_file

import torchspan
from torchspan.cli import export

NETS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, hidden: int = 4):
        super().__init__()
        self.first = nn.Linear(5, hidden)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.last(self.drop(self.first(x).relu()))

class Two(nn.Module):
    def forward(self, field, grid):
        return field * grid, field.sum(1)
"""


@pytest.fixture
def nets(tmp_path, own_modules):
    (tmp_path / "nets.py").write_text(NETS)
    return tmp_path


@pytest.fixture
def saved(monkeypatch):
    """What the command hands to torchspan.save, which is not called."""
    calls = []
    monkeypatch.setattr(
        export,
        "save",
        lambda model, path, example, **options: calls.append((model, path, example, options)),
    )
    return calls


def test_a_class_and_its_weights_become_a_model_file(torchspan_command, nets):
    random = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(shape, generator=random)
        for name, shape in (("first.weight", (6, 5)), ("first.bias", (6,)),
                            ("last.weight", (2, 6)), ("last.bias", (2,)))
    }  # fmt: skip
    save_file(weights, "w.safetensors")
    options = ("--arg", "hidden=6", "--weights", "w.safetensors", "--output-names", "y", "--check")
    words = ("export", "nets.py:Net", "-o", "net.pt2", "--example", "1x5", "--no-tune")
    done = torchspan_command(*words, *options)
    assert done.status == 0, done.err
    wrote, compared = done.out.splitlines()
    assert wrote == "wrote net.pt2"
    assert compared.startswith("cpu:0: largest difference ")
    assert float(compared.split()[-1]) < 1e-5
    assert "torchspan: compiling cpu" in done.err
    assert "compared net.pt2 on cpu:0 with the model, batch 1 and 5 and 64" in done.err
    found = torchspan.describe("net.pt2")
    assert [str(spec) for spec in (*found.inputs, *found.outputs)] == [
        "x: float32 (batch, 5)",
        "y: float32 (batch, 2)",
    ]
    x = torch.randn(3, 5)
    hidden = (x @ weights["first.weight"].T + weights["first.bias"]).relu()
    with torchspan.load("net.pt2", "cpu") as net:
        torch.testing.assert_close(net(x), hidden @ weights["last.weight"].T + weights["last.bias"])


def test_torchscript_by_the_files_ending(torchspan_command, nets):
    words = ("export", "nets.py:Net", "-o", "net.pt", "--example", "1x5", "--check")
    done = torchspan_command(*words)
    assert (done.status, done.out.splitlines()[0]) == (0, "wrote net.pt")
    assert done.err.count("deprecated in PyTorch") == 1
    assert torchspan.describe("net.pt").kind == "jit"


def test_every_option_reaches_the_file(torchspan_command, nets, saved):
    words = ["export", "nets.py:Two", "-o", "two.bin", "--format", "pt2", "--dtype", "float64"]
    words += ["--example", "field=2x3x4", "--example", "grid=4:float32", "--devices", "cpu"]
    words += ["--input-names", "f,g", "--output-names", "a, b", "--shared", "grid", "--cpu", "avx2"]
    words += ["--dynamic", "field:1=nx", "--dynamic", "field:2=ny", "--dynamic", "grid:0=ny"]
    words += ["--static-batch", "1", "--static-batch", "8", "--no-tune"]
    done = torchspan_command(*words)
    assert (done.status, done.out) == (0, "wrote two.bin\n")
    ((model, path, example, options),) = saved
    assert (type(model).__name__, path) == ("Two", "two.bin")
    assert not model.training
    assert (example["field"].shape, example["field"].dtype) == ((2, 3, 4), torch.float64)
    assert example["grid"].dtype == torch.float32
    del options["progress"]
    assert options == {
        "devices": "cpu",
        "dynamic_batch": True,
        "dynamic": {"field": {1: "nx", 2: "ny"}, "grid": {0: "ny"}},
        "static_batches": [1, 8],
        "tuned": False,
        "input_names": ["f", "g"],
        "output_names": ["a", "b"],
        "shared": ["grid"],
        "cpu": "avx2",
        "format": "pt2",
    }


def test_the_model_is_converted_and_takes_exactly_its_shapes_when_asked(
    torchspan_command, nets, saved
):
    words = ("export", "nets.py:Net", "-o", "net.pt2", "--example", "3x5")
    torchspan_command(*words, "--dtype", "float64", "--fixed-batch")
    model, _, (example,), options = saved[0]
    assert {each.dtype for each in model.parameters()} == {torch.float64}
    assert (example.shape, example.dtype) == ((3, 5), torch.float64)
    assert options["dynamic_batch"] is False
    assert options["dynamic"] is None


def test_a_file_that_gives_something_else_is_status_1(torchspan_command, nets, monkeypatch):
    def save_another(model, path, example, **options):
        return torchspan.save(torch.nn.Linear(5, 2), path, example)

    monkeypatch.setattr(export, "save", save_another)
    words = ("export", "nets.py:Net", "-o", "net.pt", "--example", "1x5", "--check")
    done = torchspan_command(*words)
    assert done.status == 1
    assert "net.pt gives something else than the model on cpu:0: the relative" in done.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("nets.py:Nett", "--example", "1x5"), "nets.py defines no 'Nett'. It defines classes ("),
        (("nets.py:Net", "--example", "1x5", "--arg", "depth=2"), "unexpected keyword argument"),
        (("nets.py:Net", "--example", "1x5", "--weights", "absent.pt"), "there is no file absent"),
        (("nets.py:Net", "--example", "1x5", "--example", "2"), "the example does not fit Net"),
        (
            ("nets.py:Net", "--example", "x=1x5", "--example", "2"),
            "some of the examples have names",
        ),
        (("nets.py:Net", "--example", "1x5", "--devices", "tpu"), "is of no known kind"),
        (("nets.py:Net", "--example", "1x5", "--cpu", "sse9"), "cpu 'sse9' is no level"),
        (("nets.py:Net", "--example", "1x4"), "Net"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(torchspan_command, nets, words, text):
    done = torchspan_command("export", *words, "-o", "net.pt2")
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines()[-1].startswith("torchspan: error: ")
    assert text in done.err
    assert "Traceback" not in done.err
    assert not (nets / "net.pt2").exists()


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (("--example", "1,5"), "'1,5' is no example input; write '1x5'"),
        (("--example", "1x5:double"), "has dtype 'double', which is not known"),
        (("--example", "1x5", "--dtype", "double"), "invalid choice: 'double'"),
        (("--example", "1x5", "--dynamic", "x"), "'x' names no dimension; write 'x:2=nx'"),
        (("--example", "1x5", "--input-names", "a,,b"), "'a,,b' is no list of names"),
        (("--example", "1x5", "--static-batch", "0"), "'0' is not a whole number from 1 up"),
        (("--example", "1x5", "--format", "onnx"), "invalid choice: 'onnx'"),
        ((), "the following arguments are required: --example"),
    ],
)
def test_a_wrong_command_line_is_status_2(torchspan_command, option, text):
    done = torchspan_command("export", "nets.py:Net", "-o", "net.pt2", *option)
    assert (done.status, done.out) == (2, "")
    assert text in done.err
