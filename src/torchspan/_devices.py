# SPDX-License-Identifier: MIT
"""Find, name and parse devices.

A device has a name (what the user writes) and a backing (where torch computes). They differ for
virtual CPUs, which share the one CPU that torch knows, and for pretended GPUs. Everything above
this module asks for the name in messages and for the backing in calls.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from torchspan import _accelerator
from torchspan._errors import DeviceError
from torchspan._log import notice
from torchspan._placement import Placement, find_placement

__all__ = [
    "Device",
    "DeviceSpec",
    "parse_devices",
    "pretended",
    "usable_cores",
    "visible_accelerators",
]

VIRTUAL_CPUS = 64

_KINDS = ("cpu", "cuda", "xpu", "mps")
_VISIBLE = {
    "cuda": ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    "xpu": ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
    "mps": (),
}
_ITEM = re.compile(r"([a-z]+)(?::(0|[1-9][0-9]{0,5}))?")


@dataclass(frozen=True)
class Device:
    """One place that computes.

    Attributes:
        kind: ``"cpu"``, ``"cuda"`` (NVIDIA, and AMD under ROCm), ``"xpu"`` or ``"mps"``.
        index: Its number among those of its kind that this process sees.
        backing: The torch device that really computes, as text: ``"cpu"``, ``"cuda:0"``, ...
    """

    kind: str
    index: int
    backing: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    @property
    def torch(self) -> torch.device:
        """The torch device that really computes."""
        return torch.device(self.backing)

    @property
    def virtual(self) -> bool:
        """Whether something else computes for it: a virtual CPU, or a GPU that is pretended."""
        return (self.kind, self.index) != ("cpu", 0) and str(self) != self.backing


DeviceSpec = str | Device | torch.device | Iterable["str | Device | torch.device"]


def parse_devices(spec: DeviceSpec = "all", placement: Placement | None = None) -> list[Device]:
    """Turn a text such as ``"cuda:0,cuda:1"`` into devices.

    Args:
        spec: Kinds (``"cuda"``: all visible of it), devices (``"cuda:1"``, ``"cpu:0"``), ``"all"``
            (every accelerator, else the CPU), ``"rank"`` (this process's own), several of these
            with commas between, or a sequence of such. A device may be listed twice. A
            ``torch.device`` always names one device; without an index it is torch's current one.
        placement: Who this process is, for ``"rank"``; found when it is not given.

    Returns:
        The devices in the order they were named.

    Raises:
        DeviceError: The text makes no sense, or names a device that is not there.
        PlacementError: ``"rank"`` was asked for and the launcher's variables are half set.
    """
    items: Iterable[object] = [spec]
    if isinstance(spec, Iterable) and not isinstance(spec, str):
        items = spec
    found: list[Device] = []
    for item in items:
        if isinstance(item, Device):
            found.append(item)
        elif isinstance(item, torch.device):
            found.extend(_parse_one(_with_index(item), str(item), placement))
        elif isinstance(item, str):
            for text in item.split(","):
                found.extend(_parse_one(text, item, placement))
        else:
            raise DeviceError(
                f"{item!r} is no device; give a text such as 'cuda:0', a torch.device or a "
                "torchspan.Device."
            )
    if not found:
        raise DeviceError(f"the list of devices is empty. {_there()}")
    return found


def visible_accelerators(kind: str | None = None) -> list[Device]:
    """The accelerators that this process sees, of one kind or of all.

    Args:
        kind: Only these; every kind when it is not given.

    Returns:
        Real ones, and pretended ones in place of the real ones of a kind that
        ``TORCHSPAN_PRETEND_<KIND>`` names.

    Raises:
        DeviceError: A ``TORCHSPAN_PRETEND_*`` variable makes no sense.
    """
    real, pretend = _accelerator.kind(), pretended()
    found: list[Device] = []
    for each in _KINDS[1:]:
        if kind not in (None, each):
            continue
        behind = _accelerator.count() if each == real else 0
        for index in range(pretend.get(each, behind)):
            backing = f"{each}:{index % behind}" if behind else "cpu"
            found.append(Device(each, index, backing))
    return found


def pretended() -> dict[str, int]:
    """Which kinds ``TORCHSPAN_PRETEND_*`` asks to pretend, and how many of each.

    Raises:
        DeviceError: The variable holds no count, or asks for more than one MPS device.
    """
    counts: dict[str, int] = {}
    for kind in _KINDS[1:]:
        variable = f"TORCHSPAN_PRETEND_{kind.upper()}"
        text = os.environ.get(variable, "").strip()
        most = 1 if kind == "mps" else VIRTUAL_CPUS
        if text in ("", "0"):
            continue
        if not (text.isascii() and text.isdigit() and int(text) <= most):
            raise DeviceError(
                f"{variable}={text!r} is not a number of devices from 0 to {most}. Set it to one, "
                "or unset it."
            )
        counts[kind] = int(text)
    for kind, number in counts.items():
        behind = "the real one" if _accelerator.kind() == kind else "virtual CPUs"
        notice(
            f"pretending {number} {kind} device{'s' * (number > 1)} on {behind}, because "
            f"TORCHSPAN_PRETEND_{kind.upper()} is set."
        )
    return counts


def usable_cores() -> int:
    """How many cores this process may use, by its affinity mask."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _parse_one(text: str, whole: str, placement: Placement | None) -> list[Device]:
    text = text.strip().lower()
    if text == "all":
        return visible_accelerators() or [_cpu(0)]
    if text == "rank":
        choice = visible_accelerators() or [_cpu(0)]
        place = placement or find_placement()
        return [choice[place.local_rank % len(choice)]]
    match = _ITEM.fullmatch(text)
    if match is None:
        raise DeviceError(
            f"{whole!r} is no list of devices; write for example 'cuda:0', 'cuda:0,cuda:1', "
            f"'cpu', 'all' or 'rank'. {_there()}"
        )
    kind, index = match[1], match[2]
    if kind in ("hip", "rocm") and torch.version.hip:
        kind = "cuda"
    if kind not in _KINDS:
        raise DeviceError(
            f"device {text!r} is of no known kind; known are {', '.join(_KINDS)}, 'all' and "
            f"'rank'. {_there()}"
        )
    if kind == "cpu":
        return [_cpu(int(index or 0))]
    choice = visible_accelerators(kind)
    if index is None and choice:
        return choice
    if index is None or int(index) >= len(choice):
        raise DeviceError(_absent(text, kind, int(index or 0)))
    return [choice[int(index)]]


def _with_index(device: torch.device) -> str:
    if ":" in str(device) or device.type == "cpu":
        return str(device)
    here = _accelerator.kind() == device.type
    return f"{device.type}:{torch.accelerator.current_device_index() if here else 0}"


def _cpu(index: int) -> Device:
    if index >= VIRTUAL_CPUS:
        raise DeviceError(
            f"device 'cpu:{index}' is not there; virtual CPUs go from cpu:0 to "
            f"cpu:{VIRTUAL_CPUS - 1}."
        )
    return Device("cpu", index, "cpu")


def _there() -> str:
    found = visible_accelerators()
    names = [str(device) for device in found] + [f"cpu:0 to cpu:{VIRTUAL_CPUS - 1} (virtual)"]
    return f"This process sees {', '.join(names)}."


def _absent(text: str, kind: str, index: int) -> str:
    masks = [
        f"{name}={os.environ[name]!r}"
        for name in _VISIBLE[kind]
        if os.environ.get(name) is not None
    ]
    mask = f" with {', '.join(masks)}" if masks else ""
    message = f"device {text!r} is not there{mask}. {_there()}"
    if index < (1 if kind == "mps" else VIRTUAL_CPUS):
        number = 1 if kind == "mps" else max(2, index + 1)
        message += (
            " To try a program that names GPUs without them, set "
            f"TORCHSPAN_PRETEND_{kind.upper()}={number}."
        )
    return message
