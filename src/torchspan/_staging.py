# SPDX-License-Identifier: MIT
"""Stream a batch from host memory through an accelerator and back, in chunks.

Three streams (in, compute, out) work on three chunks at a time. Ordinary memory cannot be copied
while a program runs, so chunks pass through page-locked buffers that are kept between calls; this
thread fills them and a second one empties them. Arrays that were registered skip the buffers.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from torchspan import _accelerator
from torchspan._arguments import Array, as_tensor
from torchspan._devices import Device
from torchspan._errors import ArgumentError, ModelError
from torchspan._log import log
from torchspan._split import cut_rows
from torchspan._workers import Worker

__all__ = ["CHUNK_BYTES", "Staging", "register", "unregister", "write"]

CHUNK_BYTES = 32 << 20

_SLOTS = 3

# The driver remembers a wrong pointer as an error of the next kernel, so it is not asked about any.
_registered: set[int] = set()


def register(array: Array) -> bool:
    """Page-lock an array that is used in many calls, so that accelerators copy it directly.

    Args:
        array: A numpy array or CPU tensor, contiguous; it must live until :func:`unregister`.

    Returns:
        Whether it is page-locked now: not on a machine whose accelerator has no such thing.

    Raises:
        ArgumentError: It is no array, or not a contiguous one.
    """
    tensor = array if isinstance(array, Tensor) else as_tensor(array, "array")
    if not tensor.is_contiguous() or (
        isinstance(array, np.ndarray) and tensor.data_ptr() != array.ctypes.data
    ):
        raise ArgumentError(
            "array is not contiguous, so it has no memory of its own to page-lock. Register the "
            "whole array that it is a part of."
        )
    locked = _is_pinned(tensor)
    if not locked:
        locked = _accelerator.page_lock(tensor.data_ptr(), tensor.nbytes, True)
        if locked:
            _registered.add(tensor.data_ptr())
    log.info("registered %d bytes: %s", tensor.nbytes, "page-locked" if locked else "not needed")
    return locked


def unregister(array: Array) -> bool:
    """Let go of an array that was given to :func:`register`; do so before it is freed.

    Raises:
        ArgumentError: It is no array.
    """
    tensor = array if isinstance(array, Tensor) else as_tensor(array, "array")
    if tensor.data_ptr() not in _registered:
        return False
    _registered.discard(tensor.data_ptr())
    return _accelerator.page_lock(tensor.data_ptr(), tensor.nbytes, False)


def write(target: Tensor, source: Tensor, non_blocking: bool = False) -> None:
    """Copy ``source`` into ``target``, also where that was made under ``torch.inference_mode``.

    torch allows it only inside that mode, which is a thread's own: a worker is never in it.
    """
    with torch.inference_mode():
        target.copy_(source, non_blocking=non_blocking)


@dataclass
class _Slot:
    """The buffers of one chunk on its way, by input or output."""

    pinned_in: dict[int, Tensor] = field(default_factory=dict)
    device_in: dict[int, Tensor] = field(default_factory=dict)
    pinned_out: dict[int, Tensor] = field(default_factory=dict)
    free: threading.Event = field(default_factory=threading.Event)


class Staging:
    """The way from host memory through one device and back.

    Args:
        device: The device.
        cores: How many threads may copy in each direction.
    """

    def __init__(self, device: Device, cores: int) -> None:
        self._device = device.torch
        self._lanes = tuple(_accelerator.Lane(device.torch) for _ in range(3))
        self._slots = [_Slot() for _ in range(_SLOTS)]
        self._emptier = Worker(device, cores, serves=True)
        self._mutex = threading.Lock()
        weakref.finalize(self, self._emptier.stop)

    def run(
        self,
        call: Callable[[list[Tensor], int], list[Tensor]],
        inputs: Sequence[Tensor],
        batched: Sequence[bool],
        rows: range,
        outs: Sequence[Tensor],
    ) -> None:
        """Run ``rows`` of the inputs and write the same rows of ``outs``, all in host memory.

        Args:
            call: Computes on the device: tensors there, and their rows, to tensors there.
            inputs: Whole inputs.
            batched: Which of them have rows; the others are copied once.
            rows: The rows to run.
            outs: Whole outputs.

        Raises:
            ModelError: Its thread ended: Python is ending, or this process was forked.
        """
        if not self._emptier.alive:
            raise ModelError("Python is ending, or this process was forked; the model is closed.")
        with self._mutex:
            shared = [
                None if b else x.to(self._device) for x, b in zip(inputs, batched, strict=True)
            ]
            failures: list[BaseException] = []
            for slot in self._slots:
                slot.free.set()
            try:
                for index, chunk in enumerate(
                    cut_rows(rows, self._chunk_rows(inputs, batched, outs))
                ):
                    slot = self._slots[index % _SLOTS]
                    slot.free.wait()
                    if failures:
                        break
                    self._launch(slot, call, inputs, shared, chunk, outs, failures)
            finally:
                # The buffers and the caller's memory are in use until every chunk has landed.
                for slot in self._slots:
                    slot.free.wait()
            if failures:
                raise failures[0]

    def _chunk_rows(
        self, inputs: Sequence[Tensor], batched: Sequence[bool], outs: Sequence[Tensor]
    ) -> int:
        sizes = [x.nbytes // max(1, x.shape[0]) for x, b in zip(inputs, batched, strict=True) if b]
        sizes += [y.nbytes // max(1, y.shape[0]) for y in outs]
        return max(1, CHUNK_BYTES // max(1, *sizes))

    def _launch(
        self,
        slot: _Slot,
        call: Callable[[list[Tensor], int], list[Tensor]],
        inputs: Sequence[Tensor],
        shared: Sequence[Tensor | None],
        chunk: range,
        outs: Sequence[Tensor],
        failures: list[BaseException],
    ) -> None:
        into, compute, out = self._lanes
        here = slice(chunk.start, chunk.stop)
        moved: list[Tensor] = []
        with _accelerator.phase(self._device, "copy in"):
            for index, (value, whole) in enumerate(zip(inputs, shared, strict=True)):
                moved.append(self._copy_in(slot, index, value[here]) if whole is None else whole)
            arrived = into.record()
        with _accelerator.phase(self._device, "compute"), compute.use():
            compute.wait(arrived)
            results = call(moved, len(chunk))
            computed = compute.record()
        landing: list[tuple[Tensor, Tensor]] = []
        with _accelerator.phase(self._device, "copy out"), out.use():
            out.wait(computed)
            for index, (result, whole) in enumerate(zip(results, outs, strict=True)):
                # Results without a batch come whole with every chunk.
                target = whole if result.shape == whole.shape else whole[here]
                buffer = (
                    target
                    if _is_pinned(target)
                    else _buffer(slot.pinned_out, index, result, len(result), torch.device("cpu"))
                )
                write(buffer, result, non_blocking=True)
                out.keep(result)
                if buffer is not target:
                    landing.append((target, buffer))
            done = out.record()
        slot.free.clear()

        def land() -> None:
            try:
                done.synchronize()
                for target, buffer in landing:
                    write(target, buffer)
            except BaseException as error:
                failures.append(error)
            finally:
                slot.free.set()

        self._emptier.put(land)

    def _copy_in(self, slot: _Slot, index: int, part: Tensor) -> Tensor:
        into = self._lanes[0]
        source = part
        if not _is_pinned(part):
            source = _buffer(slot.pinned_in, index, part, len(part), torch.device("cpu"))
            write(source, part)
        with into.use():
            target = _buffer(slot.device_in, index, part, len(part), self._device)
            write(target, source, non_blocking=True)
        return target


def _is_pinned(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and torch.accelerator.is_available() and tensor.is_pinned()


def _buffer(
    kept: dict[int, Tensor], index: int, like: Tensor, rows: int, device: torch.device
) -> Tensor:
    """The first ``rows`` rows of a buffer for rows like ``like``'s, made anew if too small."""
    have = kept.get(index)
    if (
        have is None
        or have.dtype is not like.dtype
        or have.shape[1:] != like.shape[1:]
        or have.shape[0] < rows
    ):
        pinned = device.type == "cpu" and torch.accelerator.is_available()
        have = torch.empty(
            (rows, *like.shape[1:]), dtype=like.dtype, device=device, pin_memory=pinned
        )
        kept[index] = have
    return have[:rows]
