# SPDX-License-Identifier: MIT
"""One AOTInductor build, opened on one device and called with tensors in a row.

torch's own Python binding holds the interpreter's lock while a build runs, so that two CPU devices
would take turns. CPU builds are therefore called through their C interface, which lets go of it.
Builds that need torch's proxy executor (operators without a C form) and those of accelerators,
whose calls only launch, go through torch's loader.
"""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int32, c_size_t, c_void_p, py_object
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchspan._devices import Device
from torchspan._errors import ModelError, ModelFileError

__all__ = ["OPENED", "Opened", "open_build"]

# Where the files of an unpacked build lie below its folder: torch's loader looks there.
OPENED = "data/aotinductor/model"

# How a build words a check of values that failed; the message that it was given is not kept.
_CHECK = re.compile(r"Expected u\d+ >= 1 but received 0")

Opened = Callable[[Sequence[Tensor]], list[Tensor]]

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c_void_p, [py_object, c_char_p]
_capsule_of = ctypes.pythonapi.PyCapsule_New
_capsule_of.restype, _capsule_of.argtypes = py_object, [c_void_p, c_char_p, c_void_p]


def open_build(folder: Path, device: Device, runners: int) -> Opened:
    """Open the build unpacked in ``folder``.

    Args:
        folder: Holds ``data/aotinductor/model``.
        device: Where to run.
        runners: How many calls may run at the same time; more wait for one to end.

    Returns:
        A function of contiguous inputs in a row that gives the outputs in a row. It is safe to
        call from several threads.

    Raises:
        ModelFileError: The build cannot be opened.
    """
    libraries = sorted((folder / OPENED).glob("*.so"))
    # Operators without a C form are listed beside the library, under its name.
    proxied = any(each.with_suffix(".json").exists() for each in libraries)
    if device.torch.type == "cpu" and len(libraries) == 1 and not proxied:
        return _Container(libraries[0], runners)
    index = -1 if device.torch.type == "cpu" else device.torch.index or 0
    try:
        loader: Any = torch._C._aoti.AOTIModelPackageLoader(
            str(folder), "model", False, runners, index
        )
    except RuntimeError as error:
        raise ModelFileError(f"the build in {folder} cannot be opened: {_brief(error)}") from error

    def run(inputs: Sequence[Tensor]) -> list[Tensor]:
        try:
            outputs: list[Tensor] = loader.boxed_run(list(inputs))
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            raise ModelError(f"the model failed: {_told(_brief(error))}") from error
        return outputs

    return run


class _Container:
    """A CPU build behind its C interface; calls of it run at the same time."""

    parallel = True

    def __init__(self, library: Path, runners: int) -> None:
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise ModelFileError(f"the build {library} cannot be opened: {error}") from error
        self._run = self._library.AOTInductorModelContainerRun
        self._run.restype = c_int32
        self._run.argtypes = [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]
        handle, count = c_void_p(), c_size_t()
        self._require(
            self._library.AOTInductorModelContainerCreateWithDevice(
                ctypes.byref(handle), c_size_t(runners), b"cpu", None
            )
        )
        self._handle = handle
        weakref.finalize(self, self._library.AOTInductorModelContainerDelete, handle)
        self._library.AOTInductorModelContainerGetNumOutputs(handle, ctypes.byref(count))
        self._outputs = c_void_p * count.value

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        # The build takes over the handles of its inputs and gives away those of its outputs.
        capsules = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors(list(inputs))
        count = len(capsules)
        given = (c_void_p * count)(*[_pointer_of(each, None) for each in capsules])
        results = self._outputs()
        status = self._run(self._handle, given, count, results, len(results), None, None)
        if status:
            self._require(status)
        outputs: list[Tensor] = torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs(
            [_capsule_of(each, None, None) for each in results]
        )
        return outputs

    def _require(self, status: int) -> None:
        if status == 0:
            return
        text = "its message was printed above"
        if hasattr(self._library, "AOTInductorGetLastError"):
            told = c_char_p()
            self._library.AOTInductorGetLastError(ctypes.byref(told))
            text = (told.value or b"").decode(errors="replace").strip() or text
        raise ModelError(f"the model failed: {_told(text.splitlines()[0])}")


def _told(text: str) -> str:
    """A build's message; of a check of indices, which keeps no message, what it means."""
    if not _CHECK.search(text):
        return text
    return (
        f"an index is out of range, as of an embedding or a gather, or a check of the model's own "
        f"failed ({text}). Load the file with compile=False to see which."
    )


def _brief(error: Exception) -> str:
    return str(error).split("\nException raised from", 1)[0].strip().splitlines()[0]
