# SPDX-License-Identifier: MIT
"""What a device must be able to do to run a build.

CPU builds are never made for "this very machine": each is made for one named level, so that a file
says truly where it runs. On a CPU below that level a build would end the process with SIGILL, so
it is refused before it is opened.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from torchspan import _accelerator
from torchspan._devices import Device
from torchspan._errors import ArgumentError

__all__ = [
    "CpuLevel",
    "cpu_level",
    "device_capability",
    "find_level",
    "fits",
    "gains",
    "generating_for",
    "replaced",
]


@dataclass(frozen=True)
class CpuLevel:
    """One level of CPU instructions that builds are made for.

    Attributes:
        name: What users write: ``"avx512"``.
        machine: The processor family, as ``platform.machine()`` says it.
        march: The compiler's ``-march``.
        order: Levels of one family with a larger number run builds of smaller ones.
    """

    name: str
    machine: str
    march: str
    order: int


_LEVELS = (
    CpuLevel("avx512", "x86_64", "x86-64-v4", 2),
    CpuLevel("avx2", "x86_64", "x86-64-v3", 1),
    CpuLevel("neon", "aarch64", "armv8-a", 1),
    CpuLevel("baseline", "x86_64", "x86-64", 0),
    CpuLevel("baseline", "aarch64", "armv8-a", 0),
)


def cpu_level() -> CpuLevel:
    """The highest level that this machine's CPU can run."""
    machine = platform.machine()
    name = {"AVX512": "avx512", "AVX2": "avx2"}.get(torch.backends.cpu.get_cpu_capability())
    if machine == "aarch64":
        name = "neon"
    return _find(name or "baseline", machine) or CpuLevel("baseline", machine, "", 0)


def find_level(name: str | None) -> CpuLevel:
    """The level called ``name`` on this machine's family of processors; its own for None.

    Raises:
        ArgumentError: There is no such level, or it cannot be built for on this machine.
    """
    own = cpu_level()
    if name is None:
        return own
    found = _find(name, own.machine)
    if found is None:
        names = [level.name for level in _LEVELS if level.machine == own.machine]
        raise ArgumentError(
            f"cpu {name!r} is no level that this {own.machine} machine builds for; it builds for "
            f"{', '.join(names) or 'baseline'}."
        )
    if found.order > own.order:
        raise ArgumentError(
            f"this machine's CPU reaches {own.name}, so a build for {name} could not be compared "
            f"with eager here. Build on a machine with {name}, or for {own.name}."
        )
    return found


def device_capability(device: Device) -> str:
    """The capability of a device, as builds for it are named."""
    if device.torch.type == "cpu":
        return cpu_level().name
    return _accelerator.capability(device.torch.index or 0) or device.torch.type


def fits(capability: str, device: Device) -> bool:
    """Whether ``device`` can run a build made for ``capability``."""
    own = device_capability(device)
    if device.torch.type == "cpu":
        wanted = _find(capability, platform.machine())
        return wanted is not None and wanted.order <= cpu_level().order
    if device.torch.type == "cuda" and capability.count(".") == own.count(".") == 1:
        # Compiled kernels run on the same major architecture from their own minor one upwards.
        (major, minor), (own_major, own_minor) = capability.split("."), own.split(".")
        return major == own_major and int(minor) <= int(own_minor)
    return capability == own


@contextmanager
def generating_for(level: CpuLevel | None) -> Iterator[None]:
    """Have Inductor generate for exactly ``level``; left alone it uses all that this CPU has.

    Its choice of vector instructions has no setting of its own, and in torch 2.11 neither has
    the compiler's ``-march``, so both are put in place of Inductor's own for the time of a build.
    """
    if level is None:
        yield
        return
    # Not loaded with the package: Inductor takes a second to import.
    from torch._inductor import config, cpp_builder, cpu_vec_isa

    class PlainAVX512(cpu_vec_isa.VecAVX512):
        """What every CPU of the level has; asked for its truth, torch's own adds bfloat16."""

        def __bool__(self) -> bool:  # type: ignore[override]
            return True

    kinds = {"avx512": PlainAVX512, "avx2": cpu_vec_isa.VecAVX2}
    only = [kinds[level.name]()] if level.name in kinds else []
    with ExitStack() as stack:
        if level.machine == "x86_64":
            stack.enter_context(replaced(cpu_vec_isa, "valid_vec_isa_list", lambda: only))
        if hasattr(config.cpp, "march"):
            stack.enter_context(config.patch({"cpp.march": level.march}))
        else:
            original = cpp_builder._get_optimization_cflags

            def cflags(*arguments: Any, **named: Any) -> Any:
                compile_flags, link_flags = original(*arguments, **named)
                march = f"march={level.march}"
                return [
                    march if flag == "march=native" else flag for flag in compile_flags
                ], link_flags

            stack.enter_context(replaced(cpp_builder, "_get_optimization_cflags", cflags))
        yield


def gains(device: Device, precision: str) -> bool:
    """Whether ``device`` has arithmetic of its own for ``precision``, and so gains from it."""
    kind = device.torch.type
    if precision == "tf32":
        return kind == "cuda" and torch.version.hip is None
    if kind == "cpu":
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return kind in ("cuda", "xpu")


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """Have ``module`` hold another value under ``name`` for a while."""
    original = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, original)


def _find(name: str, machine: str) -> CpuLevel | None:
    for level in _LEVELS:
        if (level.name, level.machine) == (name, machine):
            return level
    return None
