# SPDX-License-Identifier: MIT
"""``torchspan devices``: what there is to compute on, and who would get it."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchspan import _accelerator
from torchspan._devices import Device, parse_devices, pretended, usable_cores, visible_accelerators
from torchspan._model_file import device_capability
from torchspan.cli._parser import add_command
from torchspan.cli._terminal import format_bytes, print_json, print_table

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["DeviceFacts", "add_parser", "device_rows", "look_at", "run"]

HEADS = ("device", "computes on", "name", "free memory", "capability", "local ranks")


@dataclass(frozen=True)
class DeviceFacts:
    """What is known of one device.

    Attributes:
        device: Its name, such as ``"cuda:0"``.
        kind: Its kind.
        index: Its number among those of its kind.
        backing: The torch device that really computes.
        virtual: Whether it is a virtual CPU or a pretended device on something else.
        pretended: Whether ``TORCHSPAN_PRETEND_*`` put it there.
        name: What it calls itself.
        memory_free: Bytes that are free now; None where nothing says so.
        memory_total: Bytes in all; None where nothing says so.
        capability: What builds for it are named after: ``"avx512"``, ``"9.0"``.
        first_rank: The first local rank whose ``rank`` device it is; None where none's is.
        rank_step: Every how many local ranks it comes again.
        trouble: What its driver answered in place of memory and capability.
    """

    device: str
    kind: str
    index: int
    backing: str
    virtual: bool
    pretended: bool
    name: str
    memory_free: int | None
    memory_total: int | None
    capability: str | None
    first_rank: int | None
    rank_step: int
    trouble: str | None = None


def add_parser(subparsers: Subparsers) -> None:
    """Add ``devices`` to the commands."""
    parser = add_command(
        subparsers,
        "devices",
        summary="show the devices, their memory, and which local rank gets which",
        about="Without SPEC: every accelerator that this process sees, and the CPU. A local rank "
        "is a process's number among those that a launcher starts on this machine; with device "
        "'rank' each opens the device of its row.",
        example="torchspan devices cuda:0,cpu:0,cpu:1",
    )
    parser.add_argument(
        "spec",
        metavar="SPEC",
        nargs="?",
        help="devices such as 'cuda:0,cuda:1', 'all', 'rank', or 'cpu:0,cpu:1': virtual CPUs that "
        "share the cores",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the devices."""
    if arguments.spec is None:
        found = [*visible_accelerators(), *parse_devices("cpu")]
    else:
        found = parse_devices(arguments.spec)
    facts = look_at(found)
    if arguments.json:
        print_json({"devices": [asdict(each) for each in facts], "cores": usable_cores()})
    else:
        print_table("", HEADS, device_rows(facts))
    return 0


def look_at(found: Sequence[Device]) -> list[DeviceFacts]:
    """Find out what is known of devices."""
    in_turn = visible_accelerators() or parse_devices("cpu")
    pretend = pretended()
    return [_look_at_one(device, in_turn, device.kind in pretend) for device in found]


def device_rows(facts: Sequence[DeviceFacts]) -> list[tuple[str, ...]]:
    """The rows of the table of devices, as ``HEADS`` names them."""
    return [
        (
            each.device,
            _computes_on(each),
            each.name,
            _memory(each),
            each.capability or "unknown",
            _local_ranks(each),
        )
        for each in facts
    ]


def _look_at_one(device: Device, in_turn: Sequence[Device], pretend: bool) -> DeviceFacts:
    free, total, trouble, capability = None, None, None, None
    try:
        memory = _cpu_memory() if device.backing == "cpu" else _accelerator.memory(_number(device))
        free, total = memory or (None, None)
        name = _cpu_name() if device.backing == "cpu" else _accelerator.name(_number(device))
        capability = device_capability(device)
    except RuntimeError as error:
        # A driver that does not answer (a GPU lost, or in another's exclusive use) is a finding.
        name, trouble = "does not answer", str(error).splitlines()[0]
    return DeviceFacts(
        device=str(device),
        kind=device.kind,
        index=device.index,
        backing=device.backing,
        virtual=device.virtual,
        pretended=pretend,
        name=name,
        memory_free=free,
        memory_total=total,
        capability=capability,
        first_rank=in_turn.index(device) if device in in_turn else None,
        rank_step=len(in_turn),
        trouble=trouble,
    )


def _number(device: Device) -> int:
    return device.torch.index or 0


def _computes_on(facts: DeviceFacts) -> str:
    if facts.pretended:
        return f"pretended, on {facts.backing}"
    return f"virtual, on {facts.backing}" if facts.virtual else "itself"


def _memory(facts: DeviceFacts) -> str:
    if facts.trouble is not None:
        return facts.trouble
    if facts.memory_total is None:
        return "unknown"
    total = format_bytes(facts.memory_total)
    return total if facts.memory_free is None else f"{format_bytes(facts.memory_free)} of {total}"


def _local_ranks(facts: DeviceFacts) -> str:
    first, step = facts.first_rank, facts.rank_step
    if first is None:
        return "none"
    return "every" if step == 1 else f"{first}, {first + step}, {first + 2 * step} ..."


def _cpu_memory() -> tuple[int | None, int] | None:
    table = Path("/proc/meminfo")
    if table.exists():
        sizes = dict(line.split(":", 1) for line in table.read_text(encoding="ascii").splitlines())
        kibibytes = [int(sizes[name].split()[0]) for name in ("MemAvailable", "MemTotal")]
        return kibibytes[0] * 1024, kibibytes[1] * 1024
    if "SC_PHYS_PAGES" in os.sysconf_names:
        return None, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _cpu_name() -> str:
    cores = f"{usable_cores()} core{'s' * (usable_cores() > 1)}"
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()}, {cores}"
    return f"{platform.processor() or platform.machine()}, {cores}"
