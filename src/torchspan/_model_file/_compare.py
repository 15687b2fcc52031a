# SPDX-License-Identifier: MIT
"""Compare results: a build with eager, a batch's rows together with the same rows apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from torchspan._errors import BuildError
from torchspan._log import notice
from torchspan._model_file._example import Example, alike, spread, vary
from torchspan._model_file._program import run_flat

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["compare_build", "relative_error", "rows_independent"]

# How far a build may be from eager, as the 2-norm of the difference over that of the result.
TOLERANCE = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 1e-2,
    "bfloat16": 3e-2,
}


def compare_build(
    program: ExportedProgram,
    example: Example,
    run: Callable[[Sequence[Tensor]], Sequence[Tensor]],
    target: str,
    device: torch.device,
    precision: str,
    fixed: int | None = None,
) -> float:
    """Compare a build with the program run eagerly, at several batch sizes.

    Args:
        program: What was compiled.
        example: Inputs to vary.
        run: The build: flat inputs in, flat outputs out.
        target: What it is called.
        device: Where it runs.
        precision: What it computes in; lower precision is allowed more error.
        fixed: The one batch size that it takes; None for any.

    Returns:
        The largest relative error that was seen.

    Raises:
        BuildError: The build gives something else than eager; it must not be used.
    """
    worst = 0.0
    example = spread(example, lambda tried: _runs(program, tried))
    sizes: list[int | None] = [None]
    if example.rows is not None:
        sizes = [fixed] if fixed else [1, 2, 3, example.rows, 16, 33]
    for seed, rows in enumerate(sizes):
        shown = vary(example if rows is None else example.with_rows(rows), seed)
        wanted = run_flat(program, shown)
        placed = shown.on(device)
        got = run(list(placed.tensors.values()))
        for index, (ours, plain) in enumerate(zip(got, wanted, strict=True)):
            error = relative_error(ours, plain)
            worst = max(worst, error)
            most = TOLERANCE.get(str(plain.dtype).removeprefix("torch."), 0.01)
            if precision != "float32":
                most = max(most, TOLERANCE["bfloat16"])
            if not error <= most:
                raise BuildError(
                    f"the build {target} gives wrong results: output {index} differs from "
                    f"eager by {error:.1e} (relative 2-norm; at most {most:.0e} is right) at batch "
                    f"{rows}. This is torch's compiler being wrong for this model: try another "
                    "batch in the example, dynamic_batch=False, or format='pt'."
                )
    return worst


def relative_error(ours: Tensor, plain: Tensor) -> float:
    """The 2-norm of the difference over that of ``plain``; of whole numbers, the part that differs.

    Values that are not finite must be the same ones at the same places, else it is infinite.
    """
    ours, plain = ours.detach().cpu(), plain.detach().cpu()
    if ours.shape != plain.shape or ours.dtype != plain.dtype:
        return math.inf
    if not plain.numel():
        return 0.0
    if not (plain.is_floating_point() or plain.is_complex()):
        return float((ours != plain).double().mean())
    wide = torch.complex128 if plain.is_complex() else torch.float64
    ours, plain = ours.to(wide), plain.to(wide)
    finite = plain.isfinite()
    if not torch.equal(finite, ours.isfinite()):
        return math.inf
    if not torch.equal(ours[~finite].nan_to_num(7.0), plain[~finite].nan_to_num(7.0)):
        return math.inf
    difference = float((ours[finite] - plain[finite]).norm())
    return difference / max(float(plain[finite].norm()), 1e-12) if difference else 0.0


def rows_independent(program: ExportedProgram, shown: Example, check: bool = True) -> bool:
    """Whether the rows of a batch give the same results together and apart.

    An input whose rows cannot be made to differ shows nothing: the rows then count as dependent,
    which is slower and never wrong.

    Raises:
        BuildError: The program gives another result at every call.
    """
    if shown.rows is None:
        return False
    shown = vary(spread(shown, lambda tried: _runs(program, tried)), 101)
    whole = run_flat(program, shown)
    if check and any(
        relative_error(again, first) > 1e-5
        for again, first in zip(run_flat(program, shown), whole, strict=True)
    ):
        raise BuildError(
            "the model gives another result at every call with the same input, so builds cannot "
            "be compared with eager. Make it repeatable when it evaluates, or give check=False."
        )
    stuck = alike(shown)
    if stuck:
        notice(
            f"all rows of the example's {', '.join(map(repr, stuck))} are the same and no other "
            "values fit, so nobody can tell whether rows depend on each other: batches will not be "
            "split. Give an example whose rows differ."
        )
        return False
    cut = 3
    parts = [
        run_flat(
            program,
            replace(
                shown,
                tensors={
                    name: each[rows] if shown.has_rows(name) else each
                    for name, each in shown.tensors.items()
                },
            ),
        )
        for rows in (slice(0, cut), slice(cut, shown.rows))
    ]
    for index, together in enumerate(whole):
        apart = [part[index] for part in parts]
        if together.ndim and together.shape[0] == shown.rows:
            same = relative_error(torch.cat(apart), together) <= 1e-4
        else:
            same = all(relative_error(each, together) <= 1e-4 for each in apart)
        if not same:
            return False
    return True


def _runs(program: ExportedProgram, example: Example) -> bool:
    """Whether the program takes such inputs, run eagerly: torch then checks every index."""
    try:
        run_flat(program, example)
    except Exception:
        return False
    return True
