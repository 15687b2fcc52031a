# SPDX-License-Identifier: MIT
"""``pt2ts``: every option, whole modules and state dicts, and each error in one line."""

import importlib.metadata
import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from torchspan.compat.ftorch.pt2ts import main

# The tests use torch's TorchScript themselves, which says that it is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

NETS = """
import torch
from torch import nn
from layers import Scaled

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Scaled(3, 2)
        self.act = torch.nn.functional.relu
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.act(self.drop(self.inner(x)))

class Branching(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x, y):
        return x * self.scale, y / self.scale

class Unscriptable(Pair):
    def forward(self, x):
        return self.scale * {}.get(None, x)

class Sized(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, 2)

    def forward(self, x):
        return self.inner(x)

class Drawing(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)

def make():
    return Net()
"""
LAYERS = """
from torch import nn

class Scaled(nn.Linear):
    pass
"""


@dataclass
class Done:
    """What one command printed, and its exit status."""

    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def nets(tmp_path, monkeypatch, own_modules):
    """The folder of the models, and their module as a program of its own would import it."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "layers.py").write_text(LAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import nets

    torch.manual_seed(0)
    return nets


@pytest.fixture
def forget(nets):
    """Leave the models' modules to the command, which is another process for its users."""

    def forget():
        for name in ("nets", "layers"):
            del sys.modules[name]

    return forget


@pytest.fixture
def pt2ts(capfd):
    def run(name, *words, source="nets.py", state="m.pt", output="out.pt"):
        files = ["--model_definition_file", source, "--input_model_file", state]
        capfd.readouterr()
        try:
            status = main([name, *files, "--output_model_file", output, *map(str, words)])
        except SystemExit as leaving:
            status = leaving.code
        captured = capfd.readouterr()
        return Done(status, captured.out, captured.err)

    return run


@pytest.fixture
def refusal(pt2ts):
    def run(*words, **files):
        done = pt2ts(*words, **files)
        assert (done.status, done.out) == (1, "")
        assert done.err.startswith("pt2ts: error: ")
        assert done.err.count("\n") == 1
        assert not Path("out.pt").exists()
        return done.err.removeprefix("pt2ts: error: ").rstrip()

    return run


def opened():
    return torch.jit.load("out.pt")


def same(net, x):
    with torch.no_grad():
        torch.testing.assert_close(opened()(x), net.eval()(x), rtol=0, atol=0)


@pytest.mark.parametrize("whole", [False, True])
def test_a_state_dict_and_a_whole_module(nets, pt2ts, forget, whole):
    net = nets.Net()
    torch.save(net if whole else net.state_dict(), "m.pt")
    forget()
    done = pt2ts("Net")
    assert (done.status, done.out, done.err) == (0, "wrote out.pt\n", "")
    same(net, torch.randn(4, 3))
    assert not opened().training
    assert all(each.requires_grad for each in opened().parameters())


def test_a_module_saved_by_a_main_program(nets, pt2ts, forget):
    program = "exec(open('nets.py').read()); torch.manual_seed(3); torch.save(Net(), 'm.pt')"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    forget()
    assert pt2ts("Net").status == 0
    torch.manual_seed(3)
    same(nets.Net(), torch.randn(4, 3))


def test_safetensors_older_files_and_a_function_that_makes_the_model(nets, pt2ts):
    net = nets.Net()
    save_file(net.state_dict(), "m.safetensors")
    torch.save(net.state_dict(), "old.pt", _use_new_zipfile_serialization=False)
    for state in ("m.safetensors", "old.pt"):
        assert pt2ts("make", state=state).status == 0
        same(net, torch.randn(2, 3))


def test_other_weights_replace_those_of_the_model(nets, pt2ts):
    net, other = nets.Net(), nets.Net()
    torch.save(net, "m.pt")
    torch.save(other.state_dict(), "w.pt")
    assert pt2ts("Net", "--model_weights", "w.pt").status == 0
    same(other, torch.randn(2, 3))


def test_a_script_keeps_branches_and_a_trace_does_not(nets, pt2ts):
    torch.save(nets.Branching(), "m.pt")
    torch.save(torch.ones(2), "t.pt")
    down = -torch.ones(2)
    assert pt2ts("Branching").status == 0
    torch.testing.assert_close(opened()(down), down - 1)
    with pytest.warns(torch.jit.TracerWarning, match="might cause the trace to be incorrect"):
        done = pt2ts("Branching", "--trace", "--input_tensor_file", "t.pt")
    assert (done.status, done.err) == (0, "")
    torch.testing.assert_close(opened()(down), down + 1)


@pytest.mark.parametrize("trace", [[], ["--trace"]])
def test_several_inputs_and_outputs_are_compared(nets, pt2ts, trace):
    torch.save(nets.Pair().state_dict(), "m.pt")
    torch.save([torch.ones(2), torch.full((3,), 8.0)], "t.pt")
    done = pt2ts("Pair", "--test", "--input_tensor_file", "t.pt", *trace)
    assert done.status == 0
    assert done.out == (
        "wrote out.pt\nout.pt gives what the model gives: relative difference 0.0e+00\n"
    )
    x, y = opened()(torch.ones(2), torch.full((3,), 8.0))
    assert (x.tolist(), y.tolist()) == ([2.0, 2.0], [4.0, 4.0, 4.0])


@pytest.mark.parametrize("precision", ["float16", "bfloat16", "float32", "float64"])
def test_precision_converts_the_model_and_its_input(nets, pt2ts, precision):
    torch.save(nets.Net().state_dict(), "m.pt")
    torch.save(torch.ones(1, 3), "t.pt")
    words = ["--precision", precision, "--test", "--input_tensor_file", "t.pt"]
    assert pt2ts("Net", *words).status == 0
    assert {each.dtype for each in opened().parameters()} == {getattr(torch, precision)}


def test_without_precision_the_model_stays_as_it_is(nets, pt2ts):
    torch.save(nets.Net().double(), "m.pt")
    assert pt2ts("Net").status == 0
    assert {each.dtype for each in opened().parameters()} == {torch.float64}


def test_a_file_that_differs_from_the_model_is_an_error(nets, pt2ts):
    torch.save(nets.Drawing(), "m.pt")
    torch.save(torch.ones(9), "t.pt")
    done = pt2ts("Drawing", "--test", "--input_tensor_file", "t.pt")
    assert (done.status, done.out) == (1, "wrote out.pt\n")
    assert "out.pt gives something else than the model: the relative difference is" in done.err


def test_a_model_that_fails_with_its_input(nets, pt2ts, refusal):
    torch.save(nets.Net().state_dict(), "m.pt")
    torch.save(torch.ones(2, 4), "t.pt")
    words = ["--input_tensor_file", "t.pt"]
    assert "Net cannot be traced: mat1 and mat2" in refusal("Net", "--trace", *words)
    done = pt2ts("Net", "--test", *words)
    assert done.status == 1
    assert "the model fails with these inputs: mat1 and mat2" in done.err


def test_what_torch_cannot_script(nets, refusal):
    torch.save(nets.Unscriptable().state_dict(), "m.pt")
    message = refusal("Unscriptable")
    assert message.startswith("Unscriptable cannot be scripted: ")
    assert message.endswith("Record a call of it instead: --trace --input_tensor_file T.pt.")


def test_files_that_are_not_there(nets, refusal):
    assert refusal("Net") == "there is no file m.pt with the model's state."
    torch.save(nets.Net().state_dict(), "m.pt")
    assert refusal("Net", source="absent.py") == "there is no file absent.py."
    assert "nets is no Python file. Name the file that" in refusal("Net", source="nets")
    words = ["Net", "--trace", "--input_tensor_file", "absent.pt"]
    assert refusal(*words) == "there is no file absent.pt with the model's input."
    message = refusal("Net", "--model_weights", "IMAGENET1K_V1")
    assert message == "there is no file IMAGENET1K_V1 with weights."
    message = refusal("Net", output="absent/out.pt")
    assert message == "cannot write absent/out.pt: there is no folder absent."


def test_a_class_that_is_not_there(nets, refusal):
    torch.save(nets.Net().state_dict(), "m.pt")
    assert refusal("Nett").startswith("nets.py defines no 'Nett'. It defines classes (Net, Bran")


def test_a_class_that_wants_arguments_is_loaded_whole(nets, pt2ts, refusal):
    net = nets.Sized(4)
    torch.save(net.state_dict(), "m.pt")
    message = refusal("Sized")
    assert "nets.py:Sized(width) cannot be called so: missing a required argument" in message
    assert message.endswith(
        "Give them defaults, or save the whole model with torch.save(model, 'm.pt')."
    )
    torch.save(net, "m.pt")
    assert pt2ts("Sized").status == 0
    same(net, torch.randn(2, 4))


def test_a_state_that_does_not_fit(nets, refusal):
    torch.save(nets.Pair().state_dict(), "m.pt")
    message = refusal("Net")
    assert message.startswith("the weights in m.pt do not fit Net: it lacks inner.weight")
    torch.save(nets.Pair(), "m.pt")
    assert refusal("Net") == "m.pt holds a Pair, no Net."
    torch.save({"model": nets.Net().state_dict(), "epoch": 3}, "m.pt")
    assert "m.pt holds a dict of model, epoch, no state dict" in refusal("Net")
    Path("m.pt").write_bytes(b"nothing of the kind")
    assert "m.pt holds no weights" in refusal("Net")
    torch.jit.script(nets.Branching()).save("m.pt")
    assert "m.pt is TorchScript already: programs open it as it is" in refusal("Net")


class Trap:
    def __reduce__(self):
        return (os.mkdir, ("ran",))


@pytest.mark.parametrize("content", [Trap(), OrderedDict(weight=Trap()), [Trap()]])
@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_file_is_not_run(content, zipped, nets, refusal):
    torch.save(content, "m.pt", _use_new_zipfile_serialization=zipped)
    message = refusal("Net")
    if zipped:
        assert "m.pt holds a posix.mkdir, which is neither torch's nor defined" in message
        assert "Save the state alone: torch.save(model.state_dict(), ...)." in message
    else:
        assert "m.pt holds no weights that can be read without running its code" in message
    torch.save(nets.Net().state_dict(), "m.pt")
    Path("t.pt").write_bytes(pickle.dumps(content))
    assert "t.pt holds no tensors that" in refusal("Net", "--trace", "--input_tensor_file", "t.pt")
    assert not Path("ran").exists()


def test_a_damaged_module_is_an_error(nets, refusal):
    torch.save(nets.Net(), "m.pt")
    whole = Path("m.pt").read_bytes()
    Path("m.pt").write_bytes(whole[: len(whole) // 2])
    assert "m.pt" in refusal("Net")


@pytest.mark.parametrize("content", [{"x": torch.ones(2)}, [], [1.0], 3])
def test_inputs_that_are_no_tensors(nets, refusal, content):
    torch.save(nets.Net().state_dict(), "m.pt")
    torch.save(content, "t.pt")
    message = refusal("Net", "--trace", "--input_tensor_file", "t.pt")
    assert f"t.pt holds a {type(content).__name__}; the model's input is a tensor" in message


@pytest.mark.parametrize("words", [["--trace"], ["--test"], ["--precision", "float8"], ["--tr"]])
def test_a_command_line_that_makes_no_sense_is_status_2(pt2ts, words):
    done = pt2ts("Net", *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("usage: pt2ts")


def test_the_command_is_installed_and_tells_its_options():
    (entry,) = [
        each
        for each in importlib.metadata.distribution("torchspan").entry_points
        if each.name == "pt2ts"
    ]
    assert entry.value == "torchspan.compat.ftorch.pt2ts:main"
    command = Path(sys.executable).parent / "pt2ts"
    done = subprocess.run([command, "--help"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("model_definition_file F.py", "input_model_file M.pt",
                   "output_model_file OUT.pt", "input_tensor_file T.pt", "model_weights W",
                   "trace", "test", "precision DTYPE"):  # fmt: skip
        assert f"--{option}" in done.stdout
