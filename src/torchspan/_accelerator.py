# SPDX-License-Identifier: MIT
"""What this machine's accelerator is and can do: the only file that calls ``torch.cuda``.

``torch.accelerator`` speaks for CUDA, ROCm, XPU and MPS alike, so everything goes through it; what
it cannot say yet (names, capabilities, page-locking of memory that somebody else allocated) is
asked of the vendor's module here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

__all__ = [
    "Lane",
    "Mark",
    "address",
    "capability",
    "count",
    "kind",
    "memory",
    "name",
    "page_lock",
    "phase",
    "settle",
    "streams",
    "tf32",
]

_STREAMING = ("cuda", "xpu")

_tf32_lock = threading.RLock()


def kind() -> str | None:
    """The kind of accelerator that this torch drives here, or None where it sees none."""
    if count() == 0:
        return None
    current = torch.accelerator.current_accelerator()
    return None if current is None else current.type


def count() -> int:
    """How many accelerators this process sees; their ``*_VISIBLE_DEVICES`` are respected."""
    return torch.accelerator.device_count() if torch.accelerator.is_available() else 0


def memory(index: int) -> tuple[int, int] | None:
    """Free and total bytes of accelerator ``index``, or None where its driver does not say."""
    module = _module()
    if hasattr(module, "mem_get_info"):
        free, total = module.mem_get_info(index)
        return int(free), int(total)
    if hasattr(module, "recommended_max_memory"):
        total = int(module.recommended_max_memory())
        return total - int(module.driver_allocated_memory()), total
    return None


def name(index: int) -> str:
    """What accelerator ``index`` calls itself."""
    module = _module()
    return str(module.get_device_name(index)) if hasattr(module, "get_device_name") else "GPU"


def capability(index: int) -> str | None:
    """The architecture that code for accelerator ``index`` is compiled for, such as ``"9.0"``."""
    if kind() != "cuda":
        return None
    if torch.version.hip:
        return str(torch.cuda.get_device_properties(index).gcnArchName)
    return ".".join(map(str, torch.cuda.get_device_capability(index)))


@contextmanager
def tf32(kind: str) -> Iterator[None]:
    """Let float32 matrix products and convolutions round their factors to TF32 inside.

    torch keeps this in one switch for the whole process, so it is turned under a lock and turned
    back; only the launches of one call stand between.
    """
    if kind != "cuda":
        yield
        return
    cudnn: Any = torch.backends.cudnn
    switches = (torch.backends.cuda.matmul, cudnn.conv)
    with _tf32_lock:
        before = [each.fp32_precision for each in switches]
        try:
            for each in switches:
                each.fp32_precision = "tf32"
            yield
        finally:
            for each, value in zip(switches, before, strict=True):
                each.fp32_precision = value


class Lane:
    """One stream of an accelerator; on the CPU, where work is done when it is asked for, nothing.

    Args:
        device: What the stream belongs to.
    """

    def __init__(self, device: torch.device) -> None:
        self._module: Any = getattr(torch, device.type) if device.type in _STREAMING else None
        self._stream: Any = None if self._module is None else self._module.Stream(device)

    def use(self) -> AbstractContextManager[Any]:
        """Have what is launched in the ``with`` block go to this stream, on its device."""
        return nullcontext() if self._module is None else self._module.stream(self._stream)

    def record(self) -> Mark:
        """Mark the end of what was launched so far."""
        if self._module is None:
            return Mark(None)
        event = self._module.Event()
        event.record(self._stream)
        return Mark(event)

    def wait(self, mark: Mark) -> None:
        """Have what is launched from now on begin after ``mark``; the caller does not wait."""
        if mark.event is not None:
            self._stream.wait_event(mark.event)

    def keep(self, tensor: torch.Tensor) -> None:
        """Keep ``tensor``'s memory from being reused before this stream is done with it."""
        if self._stream is not None:
            tensor.record_stream(self._stream)


@dataclass(frozen=True)
class Mark:
    """A point in a stream's work."""

    event: Any

    def synchronize(self) -> None:
        """Wait, without the interpreter's lock, until the work before this point is done."""
        if self.event is not None:
            self.event.synchronize()


def settle(*devices: torch.device) -> None:
    """Wait until what this thread launched on its current streams of ``devices`` is done."""
    for device in {each for each in devices if each.type != "cpu"}:
        module: Any = getattr(torch, device.type)
        if device.type in _STREAMING:
            module.current_stream(device).synchronize()
        else:
            module.synchronize()


def streams(kind: str) -> bool:
    """Whether accelerators of this kind copy and compute at the same time."""
    return kind in _STREAMING


@contextmanager
def phase(device: torch.device, name: str) -> Iterator[None]:
    """Show the body as a range named ``name`` to NVIDIA's profilers; elsewhere nothing."""
    if device.type != "cuda" or torch.version.hip:
        yield
        return
    nvtx: Any = torch.cuda.nvtx
    nvtx.range_push(f"torchspan {name}")
    try:
        yield
    finally:
        nvtx.range_pop()


def page_lock(pointer: int, size: int, locked: bool) -> bool:
    """Page-lock memory that somebody else allocated, or let go of it.

    Returns:
        Whether this machine's accelerator has such a call and it succeeded.
    """
    if kind() != "cuda":
        return False
    cuda: Any = torch.cuda
    runtime = cuda.cudart()
    if locked:
        return int(runtime.cudaHostRegister(pointer, size, 0)) == 0
    return int(runtime.cudaHostUnregister(pointer)) == 0


def address(index: int) -> str | None:
    """What tells accelerator ``index`` from every other on this machine, or None if nothing does.

    Its number does not: a scheduler may show each process a single accelerator, numbered 0. Two
    parts of one card have the card's address, because NCCL refuses both in one group.
    """
    module = _module()
    if not hasattr(module, "get_device_properties"):
        return None
    properties = module.get_device_properties(index)
    names = ("pci_domain_id", "pci_bus_id", "pci_device_id")
    numbers = [getattr(properties, name, None) for name in names]
    if None not in numbers:
        return ":".join(map(str, numbers))
    uuid = getattr(properties, "uuid", None)
    return None if uuid is None else str(uuid)


def _module() -> Any:
    current = torch.accelerator.current_accelerator()
    return None if current is None else getattr(torch, current.type)
