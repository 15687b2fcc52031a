# SPDX-License-Identifier: MIT
"""What this machine's accelerator is and can do: the only file that calls ``torch.cuda``.

``torch.accelerator`` speaks for CUDA, ROCm, XPU and MPS alike, so everything goes through it; what
it cannot say yet (names, capabilities, page-locking of memory that somebody else allocated) is
asked of the vendor's module here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["capability", "count", "kind", "memory", "name", "tf32"]

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


def _module() -> Any:
    current = torch.accelerator.current_accelerator()
    return None if current is None else getattr(torch, current.type)
