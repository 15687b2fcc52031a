# SPDX-License-Identifier: MIT
"""Who this process is among the others that its launcher started.

Nothing is guessed and nothing is initialised: the launcher's variables are read from one table,
``launchers.json``, which the native library is built from as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from torchspan._errors import PlacementError

__all__ = ["Placement", "find_placement", "read_launchers"]


@dataclass(frozen=True)
class Placement:
    """This process's place: rank of size in all, local_rank of local_size on its machine.

    Attributes:
        rank: Number of this process among all, from 0.
        size: How many processes there are.
        local_rank: Number of this process among those on its machine, from 0.
        local_size: How many processes are on this machine; None where the launcher does not say.
        launcher: The row of the table that answered; ``"none"`` for a process started alone.
        job: What names the job on this machine; None where the launcher does not say.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int | None = 1
    launcher: str = "none"
    job: str | None = None


def find_placement(environ: Mapping[str, str] | None = None) -> Placement:
    """Read this process's placement from its launcher's variables.

    Args:
        environ: The variables to read; the process's own by default.

    Returns:
        The placement; rank 0 of 1 when no launcher was at work.

    Raises:
        PlacementError: A launcher's variables are half set, are no numbers, or contradict each
            other.
    """
    environ = os.environ if environ is None else environ
    rows = [
        row
        for row in read_launchers()
        if any(name in environ for name in row["marks"]) and not _is_alone(row, environ)
    ]
    if not rows:
        return Placement()
    begun = min(rows, key=lambda row: len(_missing(row, environ)))
    if not _missing(begun, environ):
        return _read(begun, environ)
    there = [f"{name}={environ[name]}" for name in begun["marks"] if name in environ]
    missing = _missing(begun, environ)
    raise PlacementError(
        f"the variables of {begun['name']} are half set: {', '.join(there)}, but "
        f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. Start the "
        "program with its launcher, or set or unset all of them."
    )


@cache
def read_launchers() -> list[dict[str, Any]]:
    """The rows of the table of launchers, the innermost first."""
    text = resources.files("torchspan").joinpath("launchers.json").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["launchers"]
    return rows


def _is_alone(row: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    rule = row.get("alone")
    return rule is not None and rule["set"] in environ and rule["unset"] not in environ


def _missing(row: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    needed = ("rank", "size", "local_rank")
    return [
        " or ".join(row[key]) for key in needed if not any(name in environ for name in row[key])
    ]


def _read(row: Mapping[str, Any], environ: Mapping[str, str]) -> Placement:
    rank = _number(row["rank"], environ)
    size = _number(row["size"], environ)
    local_rank = _number(row["local_rank"], environ)
    local_size = None
    if any(name in environ for name in row["local_size"]):
        local_size = _number(row["local_size"], environ)
    elif size == 1:
        local_size = 1
    whole = f"rank {rank} of {size}, local rank {local_rank}"
    if local_size is not None:
        whole += f" of {local_size}"
    most = size if local_size is None else min(size, local_size)
    if rank >= size or local_rank >= most or (local_size or 0) > size:
        raise PlacementError(
            f"the variables of {row['name']} contradict each other: {whole}; a rank must be "
            "smaller than its size, and no host has more ranks than there are. Start the program "
            "with its launcher."
        )
    job = ".".join(environ[name] for name in row["job"] if name in environ)
    return Placement(rank, size, local_rank, local_size, row["name"], job or None)


def _number(names: list[str], environ: Mapping[str, str]) -> int:
    name = next(name for name in names if name in environ)
    text = environ[name].strip()
    if not (text.isascii() and text.isdigit()):
        raise PlacementError(
            f"{name}={environ[name]!r} is not a whole number from 0 up. Start the program with "
            "its launcher, or unset the variable."
        )
    return int(text)
