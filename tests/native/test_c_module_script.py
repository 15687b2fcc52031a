# SPDX-License-Identifier: MIT
"""Python scripts as modules on tensors from C: run, trained and saved; what they keep stays."""

from ctypes import byref, c_double, c_int, c_size_t

import numpy as np
import pytest

from tests.native.test_c_script import BROKEN, SCRIPTS, write
from tests.native.test_c_tensor import failing

KEEPING = """
kept = []
def forward(x):
    kept.append(x)
    x += 1
    return kept[0]
def train(x, target):
    kept.append(target)
    return False, float((x - target).sum())
"""
SCALARS = """
def ftn_pytorch_forward(inputs):
    x, count, scale = inputs
    assert type(count) is int and type(scale) is float, inputs
    return sum([x] * count) * scale
"""


@pytest.fixture
def load(tensors, tmp_path):
    def find(text, device=None):
        return tensors.give("module_load", write(tmp_path / "model.py", text), device)

    return find


def run(tensors, module, inputs, outputs):
    counts = c_size_t(len(inputs)), c_size_t(len(outputs))
    tensors.call(
        *("module_run", module, tensors.handles(inputs), counts[0]),
        *(tensors.handles(outputs), counts[1]),
    )


def train(tensors, module, inputs, target):
    done, loss = c_int(-1), c_double(-1)
    tensors.call(
        *("module_train", module, tensors.handles(inputs), c_size_t(len(inputs)), target),
        *(byref(done), byref(loss)),
    )
    return done.value, loss.value


@pytest.mark.parametrize("device", [None, "cpu:1", "cuda:0"])
def test_forward_and_run(tensors, load, monkeypatch, device):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "1")
    module = load("def forward(a, b):\n    return a + b, a - b\n", device)
    a, b = np.arange(6.0).reshape(2, 3), np.full((2, 3), 2.0)
    given = [tensors.create(each, device) for each in (a, b)]
    plus, minus = tensors.forward(module, given, 2)
    np.testing.assert_array_equal(tensors.values(plus), a + b)
    np.testing.assert_array_equal(tensors.values(minus), a - b)
    room = [tensors.make("zeros", (2, 3), "float64", device) for _ in range(2)]
    run(tensors, module, given, room)
    np.testing.assert_array_equal(tensors.values(room[0]), a + b)
    np.testing.assert_array_equal(tensors.values(room[1]), a - b)


def test_what_a_script_keeps_stays(tensors, load):
    module = load(KEEPING)
    x = np.asfortranarray(np.arange(6, dtype="float32").reshape(2, 3))
    expected = x + 1
    given = tensors.wrap(x)
    (kept,) = tensors.forward(module, [given])
    np.testing.assert_array_equal(x, expected)  # the script wrote to the array
    x[:] = -9
    target = np.ones_like(x)
    assert train(tensors, module, [given], tensors.wrap(target)) == (0, -60.0)
    (again,) = tensors.forward(module, [tensors.create(x)])
    for each in (kept, again):
        np.testing.assert_array_equal(tensors.values(each), expected)


def test_training_and_saving(tensors, load, tmp_path):
    module = load(SCRIPTS["learning.py"])
    x = np.linspace(0, 1, 12, dtype="float32").reshape(4, 3)
    given, target, done, steps = tensors.wrap(x, 1), tensors.wrap(2 * x), 0, 0
    while not done:
        done, loss = train(tensors, module, [given], target)
        steps += 1
    assert steps > 10
    assert loss < 1e-3
    (y,) = tensors.forward(module, [given])
    np.testing.assert_allclose(tensors.values(y), 2 * x, atol=0.15)
    tensors.call("module_save", module, tmp_path / "weights.pt")
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["model.py", "weights.pt"]


def test_scalars_are_numbers_by_the_older_names(tensors, load):
    module = load(SCALARS)
    scalars = [tensors.create(np.array(3)), tensors.create(np.array(0.5))]
    (y,) = tensors.forward(module, [tensors.create(np.ones(2)), *scalars])
    np.testing.assert_array_equal(tensors.values(y), [1.5, 1.5])


def test_two_scripts_at_once(tensors, tmp_path):
    files = [write(tmp_path / f"{n}.py", f"def forward(x):\n    return x * {n}\n") for n in (2, 3)]
    two, three = (tensors.give("module_load", each, None) for each in files)
    x = tensors.create(np.ones(1))
    for _ in range(2):
        for module, value in ((two, 2), (three, 3)):
            assert tensors.values(tensors.forward(module, [x])[0]) == value


def test_errors(tensors, load, tmp_path):
    assert failing(load, BROKEN["nothing.py"], code=5).endswith("use 'torchspan export'.")
    missing = failing(tensors.give, "module_load", "no/net.py", None, code=5)
    assert missing == "there is no model file no/net.py."
    x = tensors.create(np.ones(3))
    module = load(BROKEN["arguments.py"])
    message = failing(tensors.forward, module, [x])
    assert message == "1 input was given; this model takes 2: x; y."
    module = load(BROKEN["raising.py"])
    message = failing(tensors.forward, module, [x], code=6)
    assert message.startswith("the model failed on cpu:0: KeyError: 'öhm'\nTraceback")
    assert "defines no function train" in failing(train, tensors, module, [x], x, code=6)
    assert "defines no function save" in failing(tensors.call, "module_save", module, "x", code=6)
    assert "carry no gradients" in failing(tensors.forward, module, [x], 1, 1, code=6)
    assert "has no training mode" in failing(tensors.call, "module_set_training", module, 1, code=6)
    assert "no parameters that can be had" in failing(tensors.parameters, module, code=6)
    assert "too little memory" in failing(tensors.forward, load(BROKEN["memory.py"]), [x], code=7)
    pair = load(BROKEN["two.py"])
    assert failing(tensors.forward, pair, [x], 3).startswith("3 outputs are wanted")
