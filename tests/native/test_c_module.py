# SPDX-License-Identifier: MIT
"""Modules on tensors from C: run, trained, saved and opened again in Python."""

import copy
import warnings
from ctypes import byref, c_double, c_int, c_size_t

import numpy as np
import pytest
import torch

from tests import zoo
from tests.native.test_c_errors import altered, changed
from tests.native.test_c_gradient import backward, gradient
from tests.native.test_c_tensor import failing


class Net(torch.nn.Module):
    """Two layers, something that knows training mode, and two results."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.outer = torch.nn.Linear(8, 2)
        self.outer.bias.requires_grad_(False)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.outer(torch.tanh(self.norm(self.inner(x)))) * scale
        return y, y.sum(1)


class Touchy(torch.nn.Module):
    """Raises where it is too warm, and may return what is no tensor."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        if bool(x.max() > 5):
            raise ValueError("too warm by far")
        return x, 7


def make_net():
    torch.manual_seed(1)
    net = Net().eval()
    net.norm.running_mean.uniform_()
    return net


def write_script(module, path):
    """Script a module; torch says of that, and of opening it in Python, that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(module).save(path)


@pytest.fixture(scope="module")
def net_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("net") / "net.pt"
    write_script(make_net(), path)
    return path


@pytest.fixture
def net(tensors, net_file):
    return tensors.give("module_load", net_file, None)


def draw(rows=4, dtype="float32"):
    return np.random.default_rng(rows).standard_normal((rows, 3)).astype(dtype)


def run(tensors, module, inputs, outputs):
    count, room = c_size_t(len(inputs)), c_size_t(len(outputs))
    tensors.call(
        "module_run", module, tensors.handles(inputs), count, tensors.handles(outputs), room
    )


def test_forward_and_run_give_the_same(tensors, net):
    for rows in (4, 1, 300):
        x = draw(rows)
        with torch.no_grad():
            y, total = (each.numpy() for each in make_net()(torch.from_numpy(x)))
        given = tensors.forward(net, [tensors.wrap(x)], 2)
        for mine, theirs in zip(given, (y, total), strict=True):
            np.testing.assert_allclose(tensors.values(mine), theirs, rtol=1e-5, atol=1e-6)
            assert tensors.ask(c_int, "tensor_requires_grad", mine) == 0
        out, sums = np.zeros_like(y, order="F"), np.zeros_like(total)
        run(
            tensors,
            net,
            [tensors.wrap(np.asfortranarray(x))],
            [tensors.wrap(out), tensors.wrap(sums)],
        )
        np.testing.assert_allclose(out, y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(sums, total, rtol=1e-5, atol=1e-6)
        (first,) = tensors.forward(net, [tensors.wrap(x)], 1)
        np.testing.assert_allclose(tensors.values(first), y, rtol=1e-5, atol=1e-6)


def test_a_number_where_the_model_takes_one(tensors, net):
    x, scale = tensors.wrap(draw()), tensors.create(np.array(3.0))
    (one,), (three,) = tensors.forward(net, [x]), tensors.forward(net, [x, scale])
    np.testing.assert_allclose(tensors.values(three), 3 * tensors.values(one), rtol=1e-6)


def test_gradients_reach_inputs_and_parameters(tensors, net):
    x = draw()
    given, mirror = tensors.wrap(x, 1), torch.from_numpy(x.copy()).requires_grad_()
    (y,) = tensors.forward(net, [given], gradient=1)
    backward(tensors, tensors.give("tensor_mean", y))
    model = make_net()
    model(mirror)[0].mean().backward()
    np.testing.assert_allclose(gradient(tensors, given), mirror.grad, rtol=1e-4, atol=1e-7)
    names = []
    for index, (handle, (name, parameter)) in enumerate(
        zip(tensors.parameters(net), model.named_parameters(), strict=True)
    ):
        names.append(tensors.text("module_parameter_name", net, c_size_t(index)))
        wanted = tensors.ask(c_int, "tensor_requires_grad", handle)
        assert bool(wanted) == parameter.requires_grad == (name != "outer.bias")
        np.testing.assert_array_equal(tensors.values(handle), parameter.detach())
        if wanted:
            found = gradient(tensors, handle)
            np.testing.assert_allclose(found, parameter.grad, rtol=1e-4, atol=1e-7)
    assert names == [name for name, _ in model.named_parameters()]
    message = failing(tensors.text, "module_parameter_name", net, c_size_t(6))
    assert message == "there is no parameter 6; the module has 6, counted from 0."


def test_training_and_a_round_trip(tensors, net, tmp_path):
    model, x = make_net().train(), draw(16)
    target = np.stack([x.sum(1), x.prod(1)], axis=1)
    tensors.call("module_set_training", net, 1)
    assert tensors.ask(c_int, "module_training", net) == 1
    leaves = tensors.parameters(net)
    options = None
    adam = tensors.give("optimizer_adam", tensors.handles(leaves), c_size_t(len(leaves)), options)
    mirror = torch.optim.Adam(model.parameters())
    given, wanted, losses = tensors.wrap(x), tensors.wrap(target), []
    for _ in range(25):
        tensors.call("optimizer_zero_gradients", adam)
        mirror.zero_grad()
        (y,) = tensors.forward(net, [given], gradient=1)
        loss = tensors.give("loss_mse", y, wanted, 1)
        backward(tensors, loss)
        tensors.call("optimizer_step", adam)
        expected = torch.nn.functional.mse_loss(
            model(torch.from_numpy(x))[0], torch.from_numpy(target)
        )
        expected.backward()
        mirror.step()
        losses.append((tensors.ask(c_double, "tensor_value", loss), expected.item()))
    np.testing.assert_allclose(*np.array(losses).T, rtol=1e-3)
    assert losses[-1][0] < losses[0][0]
    tensors.call("module_set_training", net, 0)
    path = tmp_path / "trained.pt"
    path.write_text("older", encoding="utf-8")
    tensors.call("module_save", net, path)
    assert [each.name for each in tmp_path.iterdir()] == ["trained.pt"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        again = torch.jit.load(path)
    assert not again.training
    expected = again(torch.from_numpy(x))[0].detach().numpy()
    out = np.zeros_like(expected)
    run(tensors, net, [given], [tensors.wrap(out)])
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    # Adam divides small numbers: single values may differ more than all of them do.
    plain = model.eval()(torch.from_numpy(x))[0].detach().numpy()
    assert np.linalg.norm(out - plain) < 1e-2 * np.linalg.norm(plain)
    (line,) = [each for each in tensors.text("module_text", net).splitlines() if "inner.w" in each]
    assert line == "inner.weight: float32 (8, 3), requires gradients"


def test_a_run_sees_changed_parameters(tensors, net):
    x, out = tensors.wrap(draw()), np.zeros((4, 2), "float32")
    run(tensors, net, [x], [tensors.wrap(out)])
    for each in tensors.parameters(net):
        tensors.call("tensor_zero", each)
    run(tensors, net, [x], [tensors.wrap(out)])
    assert (out == 0).all()


def test_wanting_no_gradients_of_parameters(tensors, net):
    for wanted in (0, 1):
        tensors.call("module_set_requires_grad", net, wanted)
        for each in tensors.parameters(net):
            assert tensors.ask(c_int, "tensor_requires_grad", each) == wanted


@pytest.mark.parametrize("kind", ["mlp", "columns"])
def test_compiled_models(tensors, model_file, kind):
    module = tensors.give("module_load", model_file(kind), None)
    model, example = zoo.ZOO[kind].make(), zoo.ZOO[kind].example()
    examples = example.values() if isinstance(example, dict) else [example]
    inputs = [each.numpy() for each in examples]
    with torch.no_grad():
        results = model(*map(torch.from_numpy, copy.deepcopy(inputs)))
    results = list(results.values()) if isinstance(results, dict) else [results]
    given = [tensors.wrap(each) for each in inputs]
    outputs = [np.zeros_like(each.numpy(), order="F") for each in results]
    run(tensors, module, given, [tensors.wrap(each) for each in outputs])
    for mine, theirs in zip(outputs, results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(tensors.forward(module, given, len(results)), results, strict=True):
        np.testing.assert_allclose(tensors.values(mine), theirs, rtol=1e-4, atol=1e-5)
    assert "compiled and has no gradients" in failing(tensors.forward, module, given, 1, 1, code=6)
    assert "cannot be trained" in failing(tensors.call, "module_set_training", module, 1, code=6)
    assert "cannot be saved" in failing(tensors.call, "module_save", module, "no.pt2", code=6)
    assert "no parameters that can be had" in failing(tensors.parameters, module, code=6)
    assert tensors.ask(c_int, "module_training", module) == 0


def test_a_result_whose_size_the_file_does_not_say(tensors, mlp_file, mlp, tmp_path):
    outputs = [{"name": "y", "dtype": "float32", "shape": ["batch", None], "batched": True}]
    path = altered(mlp_file, tmp_path / "net.pt2", changed("outputs", outputs))
    module = tensors.give("module_load", path, "cpu:1")
    x = np.ones((3, 64), "float32")
    given = tensors.create(x, "cpu:1")
    message = failing(tensors.forward, module, [given], code=6)
    assert message == (
        "the file does not say how large its output 'y' becomes: (batch, any). Make it, and use "
        "tspan_module_run."
    )
    room = tensors.make("empty", (3, 64), "float32", "cpu:1")
    run(tensors, module, [given], [room])
    expected = mlp(torch.from_numpy(x)).detach()
    np.testing.assert_allclose(tensors.values(room), expected, rtol=1e-5, atol=1e-6)
    wide = tensors.make("ones", (3, 65), "float32", "cpu:1")
    assert failing(tensors.forward, module, [wide], code=6).startswith("the file does not say")
    assert "has shape (3, 65); this model takes (batch, 64)" in failing(
        run, tensors, module, [wide], [room]
    )


def test_errors_of_modules(tensors, net, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "1")
    x, two = tensors.wrap(draw()), np.zeros((4, 2), "float32")

    def fails(inputs, outputs=1, gradient=0, code=2):
        return failing(tensors.forward, net, inputs, outputs, gradient, code=code)

    assert fails([]) == "0 inputs were given; this model takes 1 to 2."
    assert fails([x, x, x]) == "3 inputs were given; this model takes 1 to 2."
    assert fails([x, None]) == "inputs[1] is NULL; give a pointer."
    assert fails([x], 3) == "3 outputs are wanted; this model gives 2. Ask for 2 or fewer."
    assert fails([x], 1, 5) == "gradient is 5; it is 0 or 1."
    assert fails([tensors.wrap(two)], code=6).startswith("the model failed on cpu:0: ")
    assert fails([tensors.create(draw(), "cuda:0")]) == (
        "inputs[0] is on cuda:0; the module is on cpu:0. Move it with tspan_tensor_to."
    )

    def misfits(*outputs):
        return failing(run, tensors, net, [x], [tensors.wrap(each) for each in outputs])

    assert misfits(two, np.zeros(9, "float32")) == (
        "outputs[1]: target has shape (9,); the values have (4,). Give a tensor of that shape."
    )
    assert (two == 0).all()
    assert misfits(np.zeros((4, 2))).startswith("outputs[0]: target has dtype float64; the values")
    assert misfits(two, two[:, 0], two).startswith("3 outputs are wanted; this model gives 2.")
    loss, done = c_double(), c_int()
    step = ("module_train", net, tensors.handles([x]), c_size_t(1), x, byref(done), byref(loss))
    assert "defines no training step of its own" in failing(tensors.call, *step, code=6)
    nowhere = tmp_path / "no" / "net.pt"
    assert "cannot be written" in failing(tensors.call, "module_save", net, nowhere, code=5)


def test_files_that_cannot_be_opened(tensors, tmp_path):
    def fails(path, device=None, code=5):
        return failing(tensors.give, "module_load", path, device, code=code)

    assert fails("no/file.pt") == "there is no model file no/file.pt."
    torch.save({"w": torch.ones(2)}, tmp_path / "weights.pt")
    assert "holds weights, no model" in fails(tmp_path / "weights.pt")
    (tmp_path / "text.pt").write_text("hello", encoding="utf-8")
    assert "is no model file" in fails(tmp_path / "text.pt")
    assert "device 'cuda:5' is not there" in fails("no/file.pt", "cuda:5", 3)


def test_a_model_that_raises_or_returns_no_tensor(tensors, tmp_path):
    path = tmp_path / "touchy.pt"
    write_script(Touchy(), path)
    module = tensors.give("module_load", path, "cpu:1")
    hot = tensors.create(np.full(3, 9.0), "cpu:1")
    message = failing(tensors.forward, module, [hot], code=6)
    assert message.startswith("the model failed on cpu:1: ")
    assert "too warm by far" in message
    cold = tensors.create(np.zeros(3), "cpu:1")
    assert "the model returned a Int" in failing(tensors.forward, module, [cold], code=6)
    tensors.call("module_delete", module)
    assert failing(tensors.forward, module, [cold]).startswith("module is no module in use")
