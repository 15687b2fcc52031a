# SPDX-License-Identifier: MIT
"""Cut rows into even parts: the one rule by which devices, ranks and chunks share a batch."""

from __future__ import annotations

from itertools import pairwise

from torchspan._errors import ArgumentError

__all__ = ["cut_rows", "split_rows"]


def split_rows(rows: int, parts: int) -> list[range]:
    """Split ``rows`` rows into ``parts`` runs whose sizes differ by at most one.

    Args:
        rows: How many rows there are; 0 is fine.
        parts: How many runs to make, at least 1.

    Returns:
        One range a part, in order; the longer ones first, empty ones last where there are fewer
        rows than parts.

    Raises:
        ArgumentError: ``rows`` is negative or ``parts`` is not at least 1.
    """
    if rows < 0 or parts < 1:
        raise ArgumentError(
            f"cannot split {rows} rows into {parts} parts; give 0 or more rows and 1 or more parts."
        )
    each, longer = divmod(rows, parts)
    starts = [part * each + min(part, longer) for part in range(parts + 1)]
    return [range(start, stop) for start, stop in pairwise(starts)]


def cut_rows(rows: range, most: int) -> list[range]:
    """Cut a run of rows into even chunks of at most ``most`` rows.

    Args:
        rows: The run; may be empty.
        most: The largest chunk, at least 1.

    Returns:
        The chunks in order; none for an empty run.

    Raises:
        ArgumentError: ``most`` is not at least 1.
    """
    if most < 1:
        raise ArgumentError(f"cannot cut rows into chunks of {most}; give at least 1.")
    if not rows:
        return []
    chunks = split_rows(len(rows), -(-len(rows) // most))
    return [range(rows.start + chunk.start, rows.start + chunk.stop) for chunk in chunks]
