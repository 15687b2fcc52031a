# SPDX-License-Identifier: MIT
"""Before a collective operation, all ranks make sure that they mean the same one.

A collective whose ranks differ in shape or operation hangs, or gives garbage without a word. One
small reduction before it makes every rank raise instead.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import Any

import torch
import torch.distributed as dist

from torchspan._errors import ArgumentError

__all__ = ["agree"]


def agree(call: str, problem: str | None, size: int, group: Any) -> None:
    """Make sure that all ranks are about to make the same call, and none has a problem with it.

    Args:
        call: The call, in words that must be the same on every rank.
        problem: What is wrong with this rank's arguments, if anything is.
        size: How many ranks there are.
        group: A process group that carries CPU tensors.

    Raises:
        ArgumentError: On every rank, if any has a problem or the calls differ.
    """
    if size == 1:
        if problem is not None:
            raise ArgumentError(problem)
        return
    digest = int.from_bytes(hashlib.blake2b(call.encode(), digest_size=7).digest())
    # The largest of x and of -x give the range of x, so one reduction shows whether all are equal.
    claims = torch.tensor([digest, -digest, int(problem is not None)], dtype=torch.int64)
    dist.all_reduce(claims, dist.ReduceOp.MAX, group=group)
    most, least, problems = claims.tolist()
    if most == -least and not problems:
        return
    said: list[Any] = [None] * size
    dist.all_gather_object(said, (problem, call), group=group)
    raise ArgumentError(_tell(said))


def _tell(said: list[tuple[str | None, str]]) -> str:
    for rank, (problem, _) in enumerate(said):
        if problem is not None:
            return f"rank {rank}: {problem}"
    runs = [
        (call, [rank for rank, _ in run])
        for call, run in groupby(enumerate(call for _, call in said), key=lambda pair: pair[1])
    ]
    parts = [
        f"rank{'' if len(ranks) == 1 else 's'} {ranks[0]}"
        f"{'' if len(ranks) == 1 else f' to {ranks[-1]}'}: {call}"
        for call, ranks in runs[:8]
    ]
    more = "; ..." if len(runs) > 8 else ""
    return (
        f"the ranks are about to make different calls ({'; '.join(parts)}{more}). Every rank must "
        "make the same calls in the same order, on tensors of the same dtype and shape."
    )
