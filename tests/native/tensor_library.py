# SPDX-License-Identifier: MIT
"""torchspan_tensor.h from Python, so that its results can be compared with torch's own.

The compiled C programs of ``programs/`` show that it works without Python; this shows the values.
"""

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_size_t, c_void_p
from pathlib import Path

import numpy as np

KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Error(Exception):
    """A status other than OK: its code, and the thread's message."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Array(Structure):
    """``tspan_array``."""

    _fields_ = [
        ("data", c_void_p), ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", POINTER(ctypes.c_int64)),
        ("strides", POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Device(Structure):
    """``tspan_device``."""

    _fields_ = [("name", ctypes.c_char * 16), ("backing", ctypes.c_char * 16)]


class Sgd(Structure):
    """``tspan_sgd``."""

    _fields_ = [(name, c_double) for name in
                ("learning_rate", "momentum", "dampening", "weight_decay")]  # fmt: skip
    _fields_ += [("nesterov", c_int)]


class Adam(Structure):
    """``tspan_adam``."""

    _fields_ = [(name, c_double) for name in
                ("learning_rate", "beta_1", "beta_2", "eps", "weight_decay")]  # fmt: skip
    _fields_ += [("amsgrad", c_int)]


def describe(array, device=(1, 0)):
    """The ``tspan_array`` of a numpy array, which keeps what it points to alive."""
    sizes = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    steps = (ctypes.c_int64 * max(1, array.ndim))(*(s // array.itemsize for s in array.strides))
    kind = KINDS[array.dtype.kind]
    given = Array(array.ctypes.data, *device, array.ndim, kind, array.itemsize * 8, 1, sizes, steps)
    given.keep = (array, sizes, steps)
    return given


class Library:
    """Calls functions by their names without ``tspan_``; a status that is not OK is raised."""

    def __init__(self, folder: Path):
        self.c = ctypes.CDLL(str(folder / "libtorchspan.so"))
        self.c.tspan_last_error.restype = c_char_p
        self.kept = []

    def call(self, name, *arguments):
        """Call, with texts as bytes and numbers as they are."""
        code = getattr(self.c, f"tspan_{name}")(*map(_pass, arguments))
        if code:
            raise Error(code, self.c.tspan_last_error().decode())

    def give(self, name, *arguments):
        """Call a function whose last argument gives a handle."""
        handle = c_void_p(1)
        try:
            self.call(name, *arguments, byref(handle))
        except Error:
            assert handle.value is None
            raise
        assert handle.value
        return handle

    def ask(self, kind, name, *arguments):
        """Call a function whose last argument gives a value of a ctypes ``kind``."""
        value = kind()
        self.call(name, *arguments, byref(value))
        return value.value if hasattr(value, "value") else value

    def wrap(self, array, requires_grad=0, device=(1, 0)):
        """A tensor over a numpy array's memory, which is kept from then on."""
        self.kept.append(describe(array, device))
        return self.give("tensor_wrap", byref(self.kept[-1]), requires_grad)

    def create(self, array, device=None, requires_grad=0):
        """A tensor with an array's values on a device."""
        return self.give("tensor_create", byref(describe(array)), device, requires_grad)

    def make(self, what, shape, dtype="float32", device=None, requires_grad=0):
        """A tensor that is empty, zeros or ones."""
        sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        return self.give(f"tensor_{what}", len(shape), sizes, dtype, device, requires_grad)

    def values(self, tensor):
        """A copy of a tensor's values."""
        view = self.ask(Array, "tensor_view", tensor)
        kind = {number: letter for letter, number in KINDS.items()}[view.kind]
        dtype = np.dtype(f"{kind}{view.bits // 8}") if kind != "b" else np.dtype(np.bool_)
        shape, strides = view.shape[: view.ndim], view.strides[: view.ndim]
        if 0 in shape:
            return np.empty(shape, dtype)
        size = 1 + sum(step * (count - 1) for step, count in zip(strides, shape, strict=True))
        memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(view.data)
        flat = np.frombuffer(memory, dtype)
        steps = [step * dtype.itemsize for step in strides]
        return np.lib.stride_tricks.as_strided(flat, shape, steps).copy()

    def handles(self, tensors):
        """An array of handles, as C takes several."""
        return (c_void_p * max(1, len(tensors)))(*tensors)

    def text(self, name, *arguments):
        """Call a function that gives a text."""
        return self.ask(c_char_p, name, *arguments).decode()

    def parameters(self, module):
        """Handles of a module's parameters."""
        count = c_size_t()
        self.call("module_parameters", module, None, 0, byref(count))
        found = (c_void_p * count.value)()
        self.call("module_parameters", module, found, count.value, byref(count))
        return [c_void_p(each) for each in found]

    def forward(self, module, inputs, outputs=1, gradient=0):
        """Handles of a module's results."""
        found = (c_void_p * max(1, outputs))()
        given = self.handles(inputs)
        self.call(
            "module_forward", module, given, c_size_t(len(inputs)), gradient, found,
            c_size_t(outputs),
        )  # fmt: skip
        return [c_void_p(each) for each in found[:outputs]]


def _pass(argument):
    if isinstance(argument, str | Path):
        return c_char_p(str(argument).encode())
    if isinstance(argument, float):
        return c_double(argument)
    return argument
