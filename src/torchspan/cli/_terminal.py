# SPDX-License-Identifier: MIT
"""What the commands print: tables and JSON on stdout, everything that is said about them on stderr.

Where stdout is no terminal a table is plain columns as wide as they need to be: a file, a pager or
a batch system's log has no width to fit into.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table

from torchspan._errors import PlacementError
from torchspan._placement import find_placement

__all__ = ["format_bytes", "is_terminal", "notes", "print_json", "print_table", "say", "steps"]

_WIDE = 1000


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody watches ``stream``; never under a launcher, which may hand out terminals."""
    try:
        return stream.isatty() and find_placement().size == 1
    except PlacementError:
        return False


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout.

    Args:
        title: The line above it; none when empty.
        columns: The heads.
        rows: The cells, shown as they are.
    """
    terminal = is_terminal(sys.stdout)
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=terminal)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=not terminal)
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, emoji=False, highlight=False, force_terminal=terminal)
    if not terminal:
        console.width = _WIDE
    if title:
        print(title)
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print("\n".join(lines).strip("\n"))


def print_json(value: object) -> None:
    """Print a JSON value on stdout, and nothing else."""
    print(json.dumps(value, indent=2))


def notes() -> Console:
    """A console on stderr, for progress."""
    return Console(stderr=True, markup=False, emoji=False, highlight=False)


def say(text: str) -> None:
    """Say one line on stderr."""
    print(f"torchspan: {text}", file=sys.stderr, flush=True)


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Show what is being done: gives a function to call with each step's name.

    On a terminal one line turns while a step goes on; elsewhere each step is a line of its own.
    """
    if not is_terminal(sys.stderr):
        yield say
        return
    with notes().status("") as status:
        yield lambda text: status.update(f"{text} ...")


def format_bytes(number: float) -> str:
    """A number of bytes as people read it: ``"23.5 GiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
