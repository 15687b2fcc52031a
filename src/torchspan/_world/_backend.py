# SPDX-License-Identifier: MIT
"""Choose, from what every rank says of itself, what carries the data between them.

NCCL and XCCL want an accelerator of its own for every rank, and refuse or hang otherwise, so all
ranks decide together, before any of them starts one.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import torch.distributed as dist

from torchspan import _accelerator
from torchspan._devices import Device
from torchspan._world._addresses import LOOPBACK, find_interfaces
from torchspan._world._line import Line
from torchspan._world._spoke import Spoke
from torchspan._world._wire import Message

__all__ = ["choose_backend", "choose_interface", "describe_rank", "find_host"]

_OWN_LIBRARY = {"cuda": "nccl", "xpu": "xccl"}
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def find_host() -> str:
    """What tells this host from every other in a job."""
    boot = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else ""
    return f"{socket.gethostname()}/{boot}"


def describe_rank(device: Device, backend: str | None) -> Message:
    """What the others need to know of this rank before all begin."""
    kind, address = device.torch.type, None
    if kind == _accelerator.kind():
        address = _accelerator.address(device.torch.index or 0)
    available = kind == "cuda" and dist.is_nccl_available()
    available = available or (kind == "xpu" and dist.is_xccl_available())
    return {
        "host": find_host(),
        "device": str(device),
        "kind": kind,
        "card": f"{find_host().rpartition('/')[2]}/{address}" if address and available else None,
        "backend": backend,
    }


def choose_backend(everybody: list[Message]) -> Message:
    """Rank 0's decision, which every rank gets.

    Args:
        everybody: What each rank said of itself, by rank.

    Returns:
        ``backend`` for torch.distributed, ``why`` it was chosen, and each rank's ``places``: its
        local rank and local size; or the ``problem`` that keeps them from beginning, after None.
    """
    asked = {str(facts["backend"]) for facts in everybody}
    if len(asked) > 1:
        return {
            "problem": [None, f"the ranks ask for different backends: {', '.join(sorted(asked))}"]
        }
    plan: Message = {"places": _count_places(everybody)}
    if everybody[0]["backend"] is not None:
        return plan | {"backend": everybody[0]["backend"], "why": "asked for"}
    kinds = {facts["kind"] for facts in everybody}
    cards = [facts["card"] for facts in everybody]
    if len(kinds) == 1 and None not in cards and len(set(cards)) == len(cards):
        kind = kinds.pop()
        why = f"each rank has {'an' if kind == 'xpu' else 'a'} {kind} device of its own"
        return plan | {"backend": f"cpu:gloo,{kind}:{_OWN_LIBRARY[kind]}", "why": why}
    shared = sorted({str(card) for card, number in Counter(cards).items() if card and number > 1})
    why = (
        f"ranks share {len(shared)} devices" if shared else f"ranks use {', '.join(sorted(kinds))}"
    )
    return plan | {"backend": "gloo", "why": why}


def choose_interface(line: Line, reached_at: str | None) -> str | None:
    """The network interface over which this rank reaches the others, for gloo.

    gloo by itself takes the address of the host's name, which on many machines is loopback.

    Args:
        line: The line to the other ranks.
        reached_at: The address at which other hosts' ranks found rank 0; None where all ranks are
            on one host.

    Returns:
        Its name; None where it cannot be told or where the user chose it already.
    """
    if os.environ.get("GLOO_SOCKET_IFNAME"):
        return None
    interfaces = find_interfaces()
    if reached_at is None:
        return interfaces.get(LOOPBACK)
    if isinstance(line, Spoke):
        there, here = line.ends()
        if there not in interfaces:
            return interfaces.get(here)
    return interfaces.get(reached_at)


def _count_places(everybody: list[Message]) -> list[list[int]]:
    sizes: Counter[Any] = Counter(facts["host"] for facts in everybody)
    seen: Counter[Any] = Counter()
    places = []
    for facts in everybody:
        places.append([seen[facts["host"]], sizes[facts["host"]]])
        seen[facts["host"]] += 1
    return places
