# SPDX-License-Identifier: MIT
"""Tensors from C: made, asked, written to and calculated with, as torch does it."""

import operator
from ctypes import c_char_p, c_double, c_int, c_int64

import numpy as np
import pytest
import torch

from tests.native.tensor_library import Array, Device, Error

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
          "float32", "float64", "bool", "complex64", "complex128"]  # fmt: skip
OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
             "divide": operator.truediv}  # fmt: skip


def numbers(dtype, shape=(3, 4), start=1):
    return np.arange(start, start + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def failing(call, *arguments, code=2):
    with pytest.raises(Error) as raised:
        call(*arguments)
    assert raised.value.code == code
    return str(raised.value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(tensors, dtype):
    array = numbers(dtype)
    wrapped = tensors.wrap(array)
    assert tensors.text("tensor_dtype", wrapped) == dtype
    view = tensors.ask(Array, "tensor_view", wrapped)
    assert view.data == array.ctypes.data
    assert (view.bits, view.lanes, view.device_type) == (array.itemsize * 8, 1, 1)
    made = tensors.create(array)
    array[0, 0] = 0
    assert tensors.values(wrapped)[0, 0] == 0
    assert tensors.values(made)[0, 0] == np.ones(1, dtype)[0]
    for what, value in (("zeros", 0), ("ones", 1)):
        given = tensors.values(tensors.make(what, (2, 0, 3) if value else (2, 3), dtype))
        assert given.dtype == dtype
        assert (given == value).all()


def test_empty_has_a_shape_and_bfloat16_a_name(tensors):
    made = tensors.make("empty", (5, 1, 2), "bfloat16")
    view = tensors.ask(Array, "tensor_view", made)
    assert (view.shape[:3], view.strides[:3]) == ([5, 1, 2], [2, 2, 1])
    assert (view.kind, view.bits) == (4, 16)
    scalar = tensors.make("ones", ())
    assert tensors.ask(Array, "tensor_view", scalar).ndim == 0
    assert tensors.ask(c_double, "tensor_value", scalar) == 1


@pytest.mark.parametrize("order", ["whole", "fortran", "section", "transposed"])
def test_strides_without_a_copy(tensors, order):
    whole = np.asfortranarray(numbers("float64", (6, 5)))
    array = {"whole": numbers("float64", (6, 5)), "fortran": whole, "section": whole[1:6:2, ::2],
             "transposed": whole.T}[order]  # fmt: skip
    wrapped = tensors.wrap(array)
    np.testing.assert_array_equal(tensors.values(wrapped), array)
    tensors.call("tensor_fill", 7.0, wrapped)
    assert (array == 7).all()
    clone = tensors.give("tensor_clone", wrapped)
    view = tensors.ask(Array, "tensor_view", clone)
    assert list(view.strides[:2]) == [array.shape[1], 1]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float64", "float32"),
                                    ("int32", "float32"), ("int16", "int64"), ("uint8", "int8"),
                                    ("complex64", "float64")], ids=str)  # fmt: skip
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (1,)), ((1,), (3, 4)), ((), (4,)),
                                    ((1, 1, 1), (4,)), ((4,), (3, 4)), ((3, 1), (1, 4))],
                         ids=str)  # fmt: skip
def test_operators(tensors, name, dtypes, shapes):
    left, right = (numbers(d, s, 2) for d, s in zip(dtypes, shapes, strict=True))
    expected = OPERATORS[name](torch.from_numpy(left), torch.from_numpy(right)).numpy()
    result = tensors.give(f"tensor_{name}", tensors.wrap(left), tensors.wrap(right))
    given = tensors.values(result)
    if shapes == ((1, 1, 1), (4,)):
        expected = expected.reshape(4)
    np.testing.assert_allclose(given, expected, rtol=1e-6)
    assert given.shape == expected.shape


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "complex128"])
def test_negatives_powers_and_reductions(tensors, dtype):
    array = numbers(dtype)
    tensor, mirror = tensors.wrap(array), torch.from_numpy(array)
    for given, expected in (
        (tensors.give("tensor_negate", tensor), -mirror),
        (tensors.give("tensor_power_integer", tensor, c_int64(3)), mirror**3),
        (tensors.give("tensor_power", tensor, 0.5), mirror**0.5),
        (tensors.give("tensor_sum", tensor), mirror.sum()),
    ):
        np.testing.assert_allclose(tensors.values(given), expected.numpy(), rtol=1e-6)
        assert tensors.values(given).dtype == expected.numpy().dtype
    if dtype.startswith("int"):
        message = failing(tensors.give, "tensor_mean", tensor)
        assert message.startswith(f"the tensor is {dtype}, whose mean is no integer.")
        message = failing(tensors.give, "tensor_power_integer", tensor, c_int64(-1))
        assert message.startswith(f"the exponent is -1 and the tensor {dtype}; integers take")
    else:
        mean = tensors.values(tensors.give("tensor_mean", tensor))
        np.testing.assert_allclose(mean, array.mean(), rtol=1e-6)


def test_bool_arithmetic_is_refused(tensors):
    yes = tensors.make("ones", (2,), "bool")
    assert "bool tensors cannot be" in failing(tensors.give, "tensor_subtract", yes, yes)
    assert "no negative" in failing(tensors.give, "tensor_negate", yes)


def test_shapes_that_do_not_fit(tensors):
    left, right = tensors.make("ones", (2, 3)), tensors.make("ones", (2,))
    for name in OPERATORS:
        assert failing(tensors.give, f"tensor_{name}", left, right) == (
            "left has shape (2, 3) and right (2,), which do not fit. Give two of one shape, or one "
            "of one element."
        )


def test_assign_writes_into_the_target_s_memory(tensors):
    out, scalar = np.full((2, 3), -1.0, order="F"), np.zeros(1)
    source = numbers("float64", (2, 3))
    tensors.call("tensor_assign", tensors.wrap(source), tensors.wrap(out))
    np.testing.assert_array_equal(out, source)
    total = tensors.give("tensor_sum", tensors.wrap(source))
    tensors.call("tensor_assign", total, tensors.wrap(scalar))
    assert scalar[0] == 21


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_convert_and_to(tensors, dtype):
    source, out = numbers("float64"), np.zeros((3, 4), dtype)
    tensors.call("tensor_convert", tensors.wrap(source), 0, tensors.wrap(out))
    np.testing.assert_array_equal(out, source.astype(dtype))
    made = tensors.give("tensor_to", tensors.wrap(source), dtype, None)
    np.testing.assert_array_equal(tensors.values(made), source.astype(dtype))
    same = tensors.give("tensor_to", made, None, None)
    tensors.call("tensor_zero", made)
    assert tensors.values(same)[0, 0] == 1


def test_writes_that_do_not_fit(tensors):
    wide = tensors.make("zeros", (4, 3))
    one, whole = tensors.make("ones", (1,)), tensors.make("ones", (3,), "float64")
    assert failing(tensors.call, "tensor_assign", one, wide) == (
        "target has shape (4, 3); the values have (1,). Give a tensor of that shape."
    )
    assert failing(tensors.call, "tensor_assign", whole, tensors.make("ones", (3,))) == (
        "target has dtype float32; the values are float64. Give a tensor of float64, or convert "
        "with tspan_tensor_convert."
    )
    message = failing(tensors.call, "tensor_convert", tensors.make("ones", (3,)), 0, wide)
    assert message.startswith("target has shape (4, 3); the values have (3,).")
    round_ = tensors.make("ones", (3,), "complex64")
    message = failing(tensors.call, "tensor_convert", round_, 0, whole)
    assert "whose imaginary parts would be lost" in message
    still = np.lib.stride_tricks.as_strided(np.zeros(3), (3,), (0,))
    assert "share memory (a stride of 0)" in failing(
        tensors.call, "tensor_assign", whole, tensors.wrap(still)
    )


def test_share_and_detach_see_one_memory(tensors):
    array = numbers("float32")
    tensor = tensors.wrap(array, 1)
    for name, wanted in (("share", 1), ("detach", 0)):
        other = tensors.give(f"tensor_{name}", tensor)
        assert tensors.ask(Array, "tensor_view", other).data == array.ctypes.data
        assert tensors.ask(c_int, "tensor_requires_grad", other) == wanted
        tensors.call("tensor_delete", other)
    np.testing.assert_array_equal(tensors.values(tensor), array)


def test_devices(tensors, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    array = numbers("float32")
    here, there = tensors.create(array), tensors.create(array, "cuda:1")
    for tensor, name in ((here, "cpu:0"), (there, "cuda:1")):
        device = tensors.ask(Device, "tensor_device", tensor)
        assert (device.name.decode(), device.backing) == (name, b"cpu")
    assert failing(tensors.give, "tensor_add", here, there) == (
        "right is on cuda:1; the other tensor is on cpu:0. Move one of them with tspan_tensor_to."
    )
    assert "target is on cuda:1" in failing(tensors.call, "tensor_assign", here, there)
    moved = tensors.give("tensor_to", there, None, "cpu")
    np.testing.assert_array_equal(
        tensors.values(tensors.give("tensor_add", here, moved)), 2 * array
    )
    tensors.call("tensor_convert", tensors.give("tensor_negate", there), 1, here)
    np.testing.assert_array_equal(tensors.values(here), -array)
    pointed = tensors.wrap(array, 0, (2, 1))
    assert tensors.ask(Device, "tensor_device", pointed).name == b"cuda:1"


def test_devices_that_are_not_there(tensors):
    array = numbers("float32")
    assert "device 'cuda:3' is not there" in failing(tensors.create, array, "cuda:3", code=3)
    assert "'cpu,cpu:1' names 2 devices" in failing(tensors.create, array, "cpu,cpu:1", code=3)
    assert "device 'cuda:0' is not there" in failing(tensors.wrap, array, 0, (2, 0), code=3)
    assert failing(tensors.wrap, array, 0, (7, 0)).startswith("array has device type 7; 1 is the")


def test_arguments_that_make_no_sense(tensors):
    array = numbers("float32")
    assert failing(tensors.wrap, array[::-1]).startswith(
        "array 0 has stride -4 in its dimension 0; a tensor's strides are 0 or more."
    )
    assert failing(tensors.wrap, array, 2) == "requires_grad is 2; it is 0 or 1."
    assert failing(tensors.make, "zeros", (2, -3)).startswith("array 0 has size -3")
    assert failing(tensors.make, "zeros", (2,), "float31").startswith("there is no dtype 'float31'")
    assert failing(tensors.wrap, numbers("int32"), 1) == (
        "a tensor of int32 has no gradients; real and complex ones do."
    )
    assert failing(tensors.make, "zeros", (1 << 60,), code=7)
    two = tensors.make("zeros", (2,))
    assert failing(tensors.ask, c_double, "tensor_value", two) == (
        "the tensor has dtype float32 and shape (2,); one real element has a value."
    )


def test_text_is_torch_s(tensors):
    text = tensors.text("tensor_text", tensors.wrap(np.array([[1.5, 2], [3, 4]])))
    assert text.splitlines()[-1] == "[ CPUDoubleType{2,2} ]"
    assert "1.5000" in text


def test_a_deleted_tensor_is_told_apart(tensors):
    tensor = tensors.make("zeros", (2,))
    tensors.call("tensor_delete", tensor)
    words = "tensor is no tensor in use: it was deleted, or never made."
    assert failing(tensors.call, "tensor_delete", tensor) == words
    after = tensors.make("zeros", (2,))
    assert after.value != tensor.value
    assert failing(tensors.ask, c_char_p, "tensor_dtype", tensor) == words
    assert failing(tensors.give, "tensor_sum", c_int64(12345678901)) == words
    assert failing(tensors.give, "tensor_add", after, tensor).startswith("right is no tensor in")
    tensors.call("tensor_delete", None)
