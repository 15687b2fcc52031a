# SPDX-License-Identifier: MIT
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from torchspan import ArgumentError
from torchspan._weights import load_weights


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refusal(state, path=None):
    if path is None:
        path = Path("weights.pt")
        torch.save(state, path)
    with pytest.raises(ArgumentError) as caught:
        load_weights(Net(), path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_state_dict_of_torch_and_one_of_safetensors():
    state = Net().state_dict()
    torch.save(state, "weights.pt")
    save_file(state, "weights.safetensors")
    for name in ("weights.pt", "weights.safetensors"):
        model = Net()
        load_weights(model, Path(name))
        for key, value in model.state_dict().items():
            torch.testing.assert_close(value, state[key], rtol=0, atol=0)


def test_missing_extra_and_misshapen_weights_are_all_named():
    state = Net().state_dict()
    del state["first.bias"]
    state["last.weight"] = torch.zeros(2)
    state["first.weight"] = torch.zeros(4, 5)
    message = refusal(state)
    assert message == (
        "the weights in weights.pt do not fit Net: it lacks first.bias; the model has no "
        "last.weight; of another shape are first.weight (4x5, the model's is 4x3)."
    )


def test_long_lists_are_cut():
    message = refusal({f"layer{index}": torch.zeros(1) for index in range(9)})
    assert "it lacks first.weight, first.bias, norm.weight, norm.bias, norm.running_mean and 2" in (
        message
    )
    assert "has no layer0, layer1, layer2, layer3, layer4 and 4 more" in message


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_weights_of_a_wrapped_module_are_recognised(prefix):
    message = refusal({prefix + name: value for name, value in Net().state_dict().items()})
    assert f"Their names begin with {prefix!r}" in message


def test_a_checkpoint_that_holds_more_than_weights_lists_what_it_holds():
    message = refusal({"model": Net().state_dict(), "epoch": 3})
    assert "weights.pt holds a dict of model, epoch, no state dict of tensors" in message
    assert "holds a Tensor, no state dict" in refusal(torch.zeros(3))
    assert "holds a dict of nothing" in refusal({})


def test_code_in_a_file_of_weights_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    Path("trap.pt").write_bytes(pickle.dumps({"weight": Trap()}))
    message = refusal(None, Path("trap.pt"))
    assert "holds no weights that can be read without running its code" in message
    torch.save(Net(), "whole.pt")
    assert "running its code" in refusal(None, Path("whole.pt"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["weights.pt", "weights.safetensors"])
@pytest.mark.parametrize("content", [b"", b"nothing of the kind"])
def test_a_file_of_another_kind(name, content):
    Path(name).write_bytes(content)
    assert f"{name} holds no weights" in refusal(None, Path(name))


def test_a_file_that_is_not_there():
    assert refusal(None, Path("absent.pt")) == "there is no file absent.pt with weights."
