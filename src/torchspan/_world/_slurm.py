# SPDX-License-Identifier: MIT
"""What Slurm says of a job's hosts, read without asking its commands.

Compute nodes may lack ``scontrol``, so the compressed list of hosts is spread out here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchspan._errors import PlacementError

__all__ = ["find_hosts", "parse_hosts"]

_VARIABLES = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
_MOST = 1_000_000
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")
_SPAN = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def find_hosts(environ: Mapping[str, str]) -> list[str]:
    """The hosts of this job step, in Slurm's order; none where Slurm is not at work.

    Raises:
        PlacementError: Slurm's list makes no sense.
    """
    for name in _VARIABLES:
        if environ.get(name, "").strip():
            return parse_hosts(environ[name], name)
    return []


def parse_hosts(text: str, name: str = "the list of hosts") -> list[str]:
    """Spread out a list such as ``"gpu[01-03,07],login1"``.

    Args:
        text: The list; brackets may stand several times in one name.
        name: What to call the list in an error.

    Returns:
        The hosts in the order of the list, with the leading zeros of their numbers.

    Raises:
        PlacementError: The text is no such list.
    """
    hosts: list[str] = []
    place, text = 0, text.strip()
    while place <= len(text):
        names, place = _read_item(text, place, name)
        hosts += names
        if len(hosts) > _MOST:
            raise _nonsense(name, text)
    return hosts


def _read_item(text: str, place: int, name: str) -> tuple[list[str], int]:
    """Read one item from ``place``, and step over the comma after it."""
    names, start = [""], place
    while place < len(text) and text[place] != ",":
        match = _PIECE.match(text, place)
        if match is None:
            raise _nonsense(name, text)
        endings = [match[2]] if match[1] is None else _spread(match[1], name, text)
        if len(names) * len(endings) > _MOST:
            raise _nonsense(name, text)
        names = [begin + end for begin in names for end in endings]
        place = match.end()
    if place == start:
        raise _nonsense(name, text)
    return names, place + 1


def _spread(spans: str, name: str, text: str) -> list[str]:
    numbers: list[str] = []
    for span in spans.split(","):
        match = _SPAN.fullmatch(span)
        if match is None:
            raise _nonsense(name, text)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > _MOST:
            raise _nonsense(name, text)
        numbers += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return numbers


def _nonsense(name: str, text: str) -> PlacementError:
    return PlacementError(
        f"{name}={text[:200]!r} is no list of hosts such as 'gpu[01-03,07],login1'. Start the "
        "program with srun, or set MASTER_ADDR and MASTER_PORT."
    )
