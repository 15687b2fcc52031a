# SPDX-License-Identifier: MIT
"""Gradients, losses and optimizers from C against torch's own."""

import ctypes
from ctypes import byref, c_double, c_int, c_size_t

import numpy as np
import pytest
import torch

from tests.native.tensor_library import Adam, Sgd
from tests.native.test_c_tensor import failing


def draw(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def backward(tensors, tensor, external=None, retain=0):
    tensors.call("tensor_backward", tensor, external, retain)


def gradient(tensors, tensor):
    return tensors.values(tensors.give("tensor_gradient", tensor))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("order", "CF")
def test_a_formula(tensors, dtype, order):
    a, b = (np.array(draw(2, 3, seed=s), dtype=dtype, order=order) for s in (1, 2))
    three, weight = np.array([3.0], dtype), np.full((2, 3), 0.5, dtype)
    x, y = tensors.wrap(a, 1), tensors.wrap(b, 1)
    t, w = tensors.wrap(three), tensors.wrap(weight)
    cube = tensors.give("tensor_power_integer", x, ctypes.c_int64(3))
    square = tensors.give("tensor_divide", tensors.give("tensor_multiply", y, y), t)
    inside = tensors.give("tensor_negate", tensors.give("tensor_subtract", square, cube))
    out = np.zeros((2, 3), dtype)
    q = tensors.wrap(out)
    tensors.call("tensor_assign", tensors.give("tensor_multiply", t, inside), q)
    assert tensors.ask(c_int, "tensor_requires_grad", q) == 1
    ta, tb = (torch.from_numpy(each.copy()).requires_grad_() for each in (a, b))
    expected = 3 * (ta**3 - tb * tb / 3)
    np.testing.assert_allclose(out, expected.detach().numpy(), rtol=1e-5)
    expected.backward(torch.from_numpy(weight))
    backward(tensors, q, w)
    for given, wanted in ((x, ta), (y, tb)):
        np.testing.assert_allclose(gradient(tensors, given), wanted.grad.numpy(), rtol=1e-5)


def test_one_target_serves_every_step_of_a_loop(tensors):
    x, loss = tensors.wrap(np.array([2.0, 3.0]), 1), np.zeros(1)
    target = tensors.wrap(loss)
    for step in range(1, 4):
        total = tensors.give("tensor_sum", tensors.give("tensor_multiply", x, x))
        tensors.call("tensor_assign", total, target)
        backward(tensors, target)
        np.testing.assert_array_equal(gradient(tensors, x), [4.0 * step, 6.0 * step])
    tensors.call("tensor_zero_gradient", x)
    np.testing.assert_array_equal(gradient(tensors, x), [0, 0])
    assert loss[0] == 13


def test_a_target_that_was_a_view_of_a_result(tensors):
    x = tensors.wrap(np.array([2.0, 3.0]), 1)
    view = tensors.give("tensor_detach", tensors.give("tensor_negate", x))
    for _ in range(3):
        tensors.call("tensor_assign", tensors.give("tensor_multiply", x, x), view)
    backward(tensors, view, tensors.make("ones", (2,), "float64"))
    np.testing.assert_array_equal(gradient(tensors, x), [4.0, 6.0])


def test_sums_gathered_in_one_target(tensors):
    x, total = tensors.wrap(np.array([2.0, 3.0]), 1), tensors.wrap(np.zeros(2))
    for _ in range(3):
        tensors.call("tensor_assign", tensors.give("tensor_add", total, x), total)
    backward(tensors, total, tensors.make("ones", (2,), "float64"))
    np.testing.assert_array_equal(gradient(tensors, x), [3.0, 3.0])


def test_retained_and_released_graphs(tensors):
    x = tensors.wrap(np.array([2.0]), 1)
    y = tensors.give("tensor_multiply", x, x)
    backward(tensors, y, retain=1)
    backward(tensors, y)
    assert gradient(tensors, x) == [8.0]
    assert failing(backward, tensors, y) == (
        "the tensor's graph was released by an earlier backward. Give retain_graph 1 to all but "
        "the last backward, or compute the tensor again."
    )


def test_tensors_may_be_deleted_before_the_backward(tensors):
    x = tensors.wrap(np.array([2.0]), 1)
    square = tensors.give("tensor_multiply", x, x)
    y = tensors.give("tensor_negate", square)
    tensors.call("tensor_delete", square)
    backward(tensors, y)
    assert gradient(tensors, x) == [-4.0]


def test_gradients_flow_between_dtypes_and_devices(tensors, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "1")
    x = tensors.create(np.array([2.0]), "cuda:0", 1)
    y = tensors.wrap(np.zeros(1, "float32"))
    tensors.call("tensor_convert", tensors.give("tensor_multiply", x, x), 0, y)
    backward(tensors, tensors.give("tensor_to", tensors.give("tensor_clone", y), "float64", None))
    assert gradient(tensors, x) == [4.0]


def test_what_cannot_be_differentiated(tensors):
    x, plain = tensors.wrap(np.array([2.0, 3.0]), 1), tensors.wrap(np.array([2.0, 3.0]))
    y = tensors.give("tensor_multiply", x, x)
    assert "has no gradient yet" in failing(tensors.give, "tensor_gradient", x)
    assert "none is wanted of it" in failing(tensors.give, "tensor_gradient", plain)
    assert "it is a result" in failing(tensors.give, "tensor_gradient", y)
    assert "computed from nothing that requires" in failing(backward, tensors, plain)
    assert failing(backward, tensors, y).startswith("the tensor has shape (2,); a backward starts")
    short = tensors.make("ones", (1,), "float64")
    assert failing(backward, tensors, y, short) == (
        "external is float64 (1,); the tensor is float64 (2,). Give an external gradient of that "
        "dtype and shape."
    )
    other = tensors.make("ones", (2,))
    assert failing(backward, tensors, y, other).startswith("external is float32 (2,); the tensor")
    assert "a leaf that requires gradients" in failing(tensors.call, "tensor_assign", y, x)
    assert "the tensor is a result" in failing(tensors.call, "tensor_set_requires_grad", y, 0)
    assert (
        failing(tensors.call, "tensor_backward", y, None, 3) == "retain_graph is 3; it is 0 or 1."
    )
    tensors.call("tensor_fill", 1.0, x)
    message = failing(backward, tensors, y, tensors.make("ones", (2,), "float64"))
    assert message.startswith("a tensor that the backward needs was written to after it was used.")


def test_wanting_gradients_later(tensors):
    x = tensors.wrap(np.array([2.0]))
    tensors.call("tensor_zero_gradient", tensors.wrap(np.array([2.0]), 1))
    tensors.call("tensor_set_requires_grad", x, 1)
    backward(tensors, tensors.give("tensor_multiply", x, x))
    assert gradient(tensors, x) == [4.0]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mse(tensors, reduction, dtype):
    given, wanted = draw(4, 3, dtype=dtype), draw(4, 3, seed=1, dtype=dtype)
    number = ("none", "mean", "sum").index(reduction)
    x = tensors.wrap(given, 1)
    loss = tensors.give("loss_mse", x, tensors.wrap(wanted), number)
    mirror = torch.from_numpy(given.copy()).requires_grad_()
    expected = torch.nn.functional.mse_loss(mirror, torch.from_numpy(wanted), reduction=reduction)
    np.testing.assert_allclose(tensors.values(loss), expected.detach().numpy(), rtol=1e-6)
    total = tensors.give("tensor_sum", loss)
    backward(tensors, total)
    expected.sum().backward()
    np.testing.assert_allclose(gradient(tensors, x), mirror.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("classes", ["int32", "int64", "uint8", "float64"])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (4, 5, 2)], ids=str)
def test_cross_entropy(tensors, reduction, classes, shape):
    scores = draw(*shape)
    number = ("none", "mean", "sum").index(reduction)
    if classes == "float64":
        target = np.abs(draw(*shape, seed=1))
        mirror_target = torch.from_numpy(target)
    else:
        target = np.random.default_rng(2).integers(0, 5, [s for s in shape if s != 5])
        mirror_target = torch.from_numpy(np.asarray(target, dtype="int64"))
        target = np.asarray(target, dtype=classes)
    x = tensors.wrap(scores, 1)
    loss = tensors.give("loss_cross_entropy", x, tensors.wrap(target), number)
    mirror = torch.from_numpy(scores.copy()).requires_grad_()
    expected = torch.nn.functional.cross_entropy(mirror, mirror_target, reduction=reduction)
    np.testing.assert_allclose(tensors.values(loss), expected.detach().numpy(), rtol=1e-6)
    backward(tensors, tensors.give("tensor_sum", loss))
    expected.sum().backward()
    np.testing.assert_allclose(gradient(tensors, x), mirror.grad.numpy(), rtol=1e-6)


def test_losses_that_make_no_sense(tensors):
    x = tensors.wrap(draw(4, 3))
    flat, whole = tensors.wrap(draw(3)), tensors.wrap(np.ones((4, 3), "int32"))
    assert failing(tensors.give, "loss_mse", x, flat, 1) == (
        "target is float64 (3,); the input is float64 (4, 3). Give a target of that dtype and "
        "shape."
    )
    assert "input is int32; a loss is of real" in failing(tensors.give, "loss_mse", whole, x, 1)
    assert "reduction is 3; it is TSPAN_NONE" in failing(tensors.give, "loss_mse", x, x, 3)
    cross = "loss_cross_entropy"
    assert failing(tensors.give, cross, x, flat, 1).startswith("target is float64 (3,); the input")
    three = tensors.wrap(np.zeros(3, "int32"))
    assert failing(tensors.give, cross, x, three, 1).startswith(
        "target has shape (3,); an input of"
    )
    for value in (3, -1):
        wrong = tensors.wrap(np.array([0, value, 0, 0], "int32"))
        message = failing(tensors.give, cross, x, wrong, 1)
        assert message == f"target holds class {value}; the input has classes 0 to 2."
    scalar = tensors.wrap(np.array(1.0))
    assert "input has no dimensions" in failing(tensors.give, cross, scalar, three, 1)


SGD = {
    "plain": {"learning_rate": 0.1},
    "decay": {"learning_rate": 0.1, "weight_decay": 0.1},
    "momentum": {"learning_rate": 0.01, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
    "nesterov": {"learning_rate": 0.01, "momentum": 0.9, "nesterov": 1},
}
ADAM = {
    "plain": {},
    "all": {"learning_rate": 0.05, "beta_1": 0.8, "beta_2": 0.95, "eps": 1e-6, "weight_decay": 0.2},
    "amsgrad": {"learning_rate": 0.1, "beta_2": 0.5, "amsgrad": 1},
}


def options_of(kind, chosen):
    """The options of C and of torch."""
    defaults = Sgd(1e-3, 0, 0, 0, 0)
    if kind != "sgd":
        defaults = Adam(1e-3, 0.9, 0.999, 1e-8, 0.01 if kind == "adamw" else 0, 0)
    for name, value in chosen.items():
        setattr(defaults, name, value)
    same = {name: value for name, value in chosen.items() if not name.startswith("beta")}
    if "learning_rate" in same:
        same["lr"] = same.pop("learning_rate")
    for flag in ("nesterov", "amsgrad"):
        if flag in same:
            same[flag] = bool(same[flag])
    if kind != "sgd":
        same["betas"] = (chosen.get("beta_1", 0.9), chosen.get("beta_2", 0.999))
    return byref(defaults), same


CASES = [("sgd", name) for name in SGD] + [(k, name) for k in ("adam", "adamw") for name in ADAM]


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F", "section"])
def test_25_steps_of_an_optimizer(tensors, kind, name, dtype, order):
    chosen = (SGD if kind == "sgd" else ADAM)[name]
    options, same = options_of(kind, chosen)
    whole = np.asfortranarray(draw(7, 6, dtype=dtype))
    matrix = {"C": np.ascontiguousarray(whole), "F": whole, "section": whole[1:6:2, ::3]}[order]
    extra, row, late = draw(3, seed=1, dtype=dtype), draw(matrix.shape[1], dtype=dtype), draw(2)
    mirrors = [torch.from_numpy(each.copy()).requires_grad_() for each in (matrix, extra, late)]
    leaves = [tensors.wrap(each, 1) for each in (matrix, extra, late)]
    count = c_size_t(3)
    given = tensors.give(f"optimizer_{kind}", tensors.handles(leaves), count, options)
    classes = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    expected = classes[kind](mirrors, **same)
    weight = tensors.wrap(row)
    for step in range(25):
        tensors.call("optimizer_zero_gradients", given)
        expected.zero_grad(set_to_none=False)
        # A parameter that has no gradient yet is left alone until it has one.
        for index in range(3 if step > 4 else 2):
            scaled = tensors.give("tensor_multiply", leaves[index], leaves[index])
            mirror = mirrors[index] * mirrors[index]
            if index == 0:
                scaled = tensors.give("tensor_multiply", scaled, weight)
                mirror = mirror * torch.from_numpy(row)
            backward(tensors, tensors.give("tensor_sum", scaled))
            mirror.sum().backward()
        tensors.call("optimizer_step", given)
        expected.step()
        if step == 12:
            tensors.call("optimizer_set_learning_rate", given, 0.02)
            expected.param_groups[0]["lr"] = 0.02
    # torch adds up in another order than its own fused kernels.
    rounding = {"rtol": 2e-4, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-6, "atol": 1e-8}
    for array, mirror in zip((matrix, extra, late), mirrors, strict=True):
        np.testing.assert_allclose(array, mirror.detach().numpy(), **rounding)
    tensors.call("optimizer_delete", given)
    assert failing(tensors.call, "optimizer_step", given) == (
        "optimizer is no optimizer in use: it was deleted, or never made."
    )


@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parameters_of_half_precision_beside_whole_ones(tensors, kind, dtype):
    leaves = [tensors.make("ones", (3,), each, None, 1) for each in (dtype, "float32")]
    options, same = options_of(kind, {"learning_rate": 0.25})
    made = tensors.give(f"optimizer_{kind}", tensors.handles(leaves), c_size_t(2), options)
    mirror = torch.ones(3).requires_grad_()
    classes = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    expected = classes[kind]([mirror], **same)
    for leaf in (*leaves, mirror):
        if leaf is mirror:
            mirror.sum().backward()
        else:
            backward(tensors, tensors.give("tensor_sum", leaf))
    tensors.call("optimizer_step", made)
    expected.step()
    for leaf in leaves:
        given = tensors.values(tensors.give("tensor_to", leaf, "float32", None))
        np.testing.assert_allclose(given, mirror.detach(), rtol=5e-3)


def test_defaults(tensors):
    for kind in ("sgd", "adam", "adamw"):
        results = []
        for options in (None, options_of(kind, {})[0]):
            array = draw(5)
            leaf = tensors.wrap(array, 1)
            made = tensors.give(f"optimizer_{kind}", tensors.handles([leaf]), c_size_t(1), options)
            backward(
                tensors, tensors.give("tensor_sum", tensors.give("tensor_multiply", leaf, leaf))
            )
            tensors.call("optimizer_step", made)
            results.append(array)
        np.testing.assert_array_equal(*results)
        assert (results[0] != draw(5)).all()


def test_a_graph_learns_that_a_step_changed_its_tensors(tensors):
    x = tensors.wrap(np.array([2.0]), 1)
    made = tensors.give("optimizer_sgd", tensors.handles([x]), c_size_t(1), None)
    y = tensors.give("tensor_multiply", x, x)
    backward(tensors, y, retain=1)
    tensors.call("optimizer_step", made)
    assert "was written to after it was used" in failing(backward, tensors, y)


def test_optimizers_that_make_no_sense(tensors):
    x, plain = tensors.wrap(draw(3), 1), tensors.wrap(draw(3))
    result = tensors.give("tensor_negate", x)

    def make(*leaves, kind="sgd", **chosen):
        options = options_of(kind, chosen)[0]
        count = c_size_t(len(leaves))
        return failing(tensors.give, f"optimizer_{kind}", tensors.handles(leaves), count, options)

    assert make(plain).startswith("of the 1 parameters none requires gradients, so no step would")
    assert make().startswith("of the 0 parameters none requires gradients")
    assert make(x, result).startswith("parameters[1] is a result; parameters are tensors that were")
    assert make(x, tensors.give("tensor_share", x)) == (
        "parameters[1] was given before; give each parameter once."
    )
    whole = tensors.wrap(np.ones(2, "int32"))
    assert make(x, whole) == "parameters[1] is int32; parameters are real numbers."
    assert make(x, None) == "parameters[1] is NULL; give a pointer."
    assert make(x, learning_rate=-1.0) == "learning_rate is -1; it is at least 0."
    assert make(x, learning_rate=float("nan")) == "learning_rate is nan; it is at least 0."
    assert make(x, momentum=-1) == "momentum is -1; it is at least 0."
    assert make(x, nesterov=1).startswith("nesterov is 1 with momentum 0 and dampening 0; it takes")
    for name in ("beta_1", "beta_2"):
        message = make(x, kind="adam", **{name: 1.0})
        assert message == f"{name} is 1; it is at least 0 and less than 1."
    assert make(x, kind="adamw", eps=-1) == "eps is -1; it is at least 0."
    assert make(x, kind="adamw", amsgrad=2) == "amsgrad is 2; it is 0 or 1."
    sgd = tensors.give("optimizer_sgd", tensors.handles([x]), c_size_t(1), None)
    message = failing(tensors.call, "optimizer_set_learning_rate", sgd, -2.0)
    assert message == "learning_rate is -2; it is at least 0."
    tensors.call("optimizer_step", sgd)  # no gradient yet: nothing to do
    tensors.call("optimizer_zero_gradients", sgd)
    assert tensors.ask(c_double, "tensor_value", tensors.give("tensor_sum", x)) == draw(3).sum()
