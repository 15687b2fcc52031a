# SPDX-License-Identifier: MIT
"""``torchspan run``: a model over the rows of ``.npy`` files, on all devices and ranks.

The main rank settles what is to be done and hands it to the others; each then reads, computes and
writes its own blocks.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from torchspan._errors import ArgumentError
from torchspan._model import Model, load
from torchspan._model_file import Description, describe
from torchspan._split import split_rows
from torchspan._world import World, join
from torchspan.cli._begin import Job, begin, check_names, journal_path, make_parts
from torchspan.cli._journal import Journal
from torchspan.cli._npy import map_input
from torchspan.cli._parser import add_command, positive
from torchspan.cli._plan import (
    InputFile,
    OutputSpec,
    Plan,
    choose_block,
    match_inputs,
    predict_outputs,
)
from torchspan.cli._stream import stream_blocks
from torchspan.cli._terminal import is_terminal, notes, say

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Subparsers) -> None:
    """Add ``run`` to the commands."""
    parser = add_command(
        subparsers,
        "run",
        summary="run a model over .npy files, in blocks of rows",
        about="The files may be larger than memory. Under torchrun, mpiexec or srun the ranks "
        "share the rows. A run that was interrupted goes on when the same command is given again, "
        "with any number of ranks.",
        example="torchspan run net.pt2 x.npy -o y.npy --devices all --batch 4096",
    )
    parser.add_argument("model", metavar="MODEL", help="a .pt2, .pt or .py file")
    parser.add_argument("inputs", metavar="INPUT", nargs="+", help="an .npy file for each input")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        required=True,
        metavar="FILE",
        help="an .npy file for each output, in order; repeat -o for each",
    )
    parser.add_argument(
        "--devices",
        help="where to run, as 'torchspan devices' names them (default: 'all'; under a launcher "
        "'rank', one for each)",
    )
    parser.add_argument(
        "--batch",
        type=positive,
        metavar="N",
        help="rows to run at a time (default: 64 MiB of rows)",
    )
    parser.add_argument(
        "--precision",
        default="float32",
        metavar="NAME",
        help="bfloat16 or tf32 on devices that gain from it; float32, the default, is the model's "
        "own",
    )
    parser.add_argument(
        "--shared",
        action="append",
        default=[],
        metavar="NAME",
        help="an input without a batch dimension, of a model that does not say so; may be repeated",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace outputs that are there")
    parser.add_argument(
        "--restart",
        action="store_true",
        help="begin with the first row again, instead of going on with an interrupted run",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress and no summary")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the model."""
    job = Job(
        model=Path(arguments.model),
        inputs=tuple(map(Path, arguments.inputs)),
        outputs=tuple(map(Path, arguments.output)),
        precision=arguments.precision,
        batch=arguments.batch,
        overwrite=arguments.overwrite,
        restart=arguments.restart,
    )
    # The ranks exchange a few words only: gloo does, and leaves the GPUs alone.
    with join("cpu") as world:
        devices = arguments.devices or ("all" if world.size == 1 else "rank")
        _run(job, world, devices, frozenset(arguments.shared), arguments.quiet)
    return 0


def _run(job: Job, world: World, devices: str, shared: frozenset[str], quiet: bool) -> None:
    opened = _Opened()
    try:
        settled: tuple[Plan, list[int]] | None = None
        if world.is_main:
            check_names(job)
            settled = opened.settle(job, devices, shared, world.size)
        plan, todo = world.broadcast(settled)
        if not world.is_main:
            opened.open(job, devices, shared)
            opened.journal = Journal(journal_path(job.outputs[0]))
            opened.journal.read()
        _stream(job, world, opened, plan, todo, quiet)
    finally:
        opened.close()


@dataclass
class _Opened:
    """What this rank holds open."""

    net: Model | None = None
    inputs: Sequence[InputFile] = ()
    journal: Journal | None = None

    def open(self, job: Job, devices: str, shared: frozenset[str]) -> Description:
        arrays = [map_input(path) for path in job.inputs]
        # Files that do not fit are found before the model is opened, which may take long.
        description = _with_shared(describe(job.model), shared)
        self.inputs = match_inputs(description, job.inputs, arrays)
        self.net = load(job.model, devices, precision=job.precision, shared=shared)
        told = _with_shared(self.net.description, shared)
        if told != description:
            self.inputs = match_inputs(told, job.inputs, arrays)
        return told

    def settle(
        self, job: Job, devices: str, shared: frozenset[str], ranks: int
    ) -> tuple[Plan, list[int]]:
        """On the main rank: what will be done, and which blocks of it are not done yet."""
        description = self.open(job, devices, shared)
        assert self.net is not None
        if ranks > 1 and len(self.net.devices) > 1:
            names = ", ".join(map(str, self.net.devices))
            say(f"each of {ranks} ranks opens {names}; --devices rank gives each rank its own.")
        outputs = predict_outputs(description, self.inputs) or _try_outputs(self.net, self.inputs)
        if len(outputs) != len(job.outputs):
            names = ", ".join(spec.name for spec in description.outputs or ())
            raise ArgumentError(
                f"{len(job.outputs)} outputs were named with -o, but this model gives "
                f"{len(outputs)}{f' ({names})' if names else ''}. Give -o FILE once for each."
            )
        rows = next(len(each.array) for each in self.inputs if each.batched)
        read = sum(each.row_bytes for each in self.inputs)
        written = sum(each.row_bytes for each in outputs)
        block = choose_block(description, rows, read + written, ranks, job.batch)
        plan, self.journal = begin(job, self.inputs, outputs, block)
        return plan, self.journal.todo()

    def close(self) -> None:
        if self.net is not None:
            self.net.close()
        if self.journal is not None:
            self.journal.close()


def _stream(
    job: Job, world: World, opened: _Opened, plan: Plan, todo: list[int], quiet: bool
) -> None:
    assert opened.net is not None
    assert opened.journal is not None
    rows = sum(len(plan.rows_of(block)) for block in todo)
    if world.is_main and rows < plan.rows:
        say(f"going on: {plan.rows - rows} of {plan.rows} rows are done.")
    share = split_rows(len(todo), world.size)[world.rank]
    mine = todo[share.start : share.stop]
    parts = make_parts(job, plan) if todo else []
    started = time.perf_counter()
    try:
        for part in parts:
            part.open()
        own = sum(len(plan.rows_of(block)) for block in mine)
        with _progress(own, quiet) as advance:
            stream_blocks(opened.net, plan, mine, opened.inputs, parts, opened.journal, advance)
        world.barrier()
    except KeyboardInterrupt:
        left = sum(len(plan.rows_of(block)) for block in opened.journal.todo())
        say(f"{plan.rows - left} of {plan.rows} rows are done; the same command goes on.")
        raise
    finally:
        for part in parts:
            part.close()
    seconds = time.perf_counter() - started
    if world.is_main:
        for part in make_parts(job, plan):
            part.finish()
        opened.journal.remove()
        if not quiet:
            print(_summary(job, world, opened, plan, rows, seconds))


def _with_shared(description: Description, shared: frozenset[str]) -> Description:
    if not shared:
        return description
    names = [spec.name for spec in description.inputs or ()]
    unknown = sorted(shared - set(names))
    if unknown:
        told = f"its inputs are {', '.join(names)}" if names else "it does not name its inputs"
        raise ArgumentError(f"--shared names {', '.join(unknown)}, but {told}.")
    inputs = tuple(
        replace(spec, batched=spec.batched and spec.name not in shared)
        for spec in description.inputs or ()
    )
    return replace(description, inputs=inputs)


def _try_outputs(net: Callable[..., Any], inputs: Sequence[InputFile]) -> tuple[OutputSpec, ...]:
    """What the model gives for its first two rows, where its file does not say."""
    given = [
        np.array(
            each.array[:2] if each.batched else each.array,
            each.array.dtype.newbyteorder("="),
            order="C",
        )
        for each in inputs
    ]
    rows = next(len(one) for one, each in zip(given, inputs, strict=True) if each.batched)
    result = net(*given)
    values = result.values() if isinstance(result, dict) else result
    arrays = [values] if isinstance(values, np.ndarray) else list(values)
    for array in arrays:
        if array.ndim == 0 or len(array) != rows:
            raise ArgumentError(
                f"the model gives {tuple(array.shape)} for {rows} rows, so its results cannot be "
                "put together from blocks of rows. Call it from Python."
            )
    return tuple(OutputSpec(array.dtype.name, tuple(array.shape[1:])) for array in arrays)


@contextmanager
def _progress(rows: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    if quiet or not is_terminal(sys.stderr):
        yield lambda _: None
        return
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes(), transient=True) as progress:
        task = progress.add_task("rows", total=rows)
        yield lambda done: progress.advance(task, done)


def _summary(job: Job, world: World, opened: _Opened, plan: Plan, rows: int, seconds: float) -> str:
    assert opened.net is not None
    names = ", ".join(map(str, job.outputs))
    where = ", ".join(map(str, opened.net.devices)) if world.size == 1 else f"{world.size} ranks"
    text = f"{names}: {plan.rows} rows"
    if rows < plan.rows:
        text += f", {rows} of them now"
    text += f", in {seconds:.2f} s on {where}"
    if rows:
        read = rows * sum(each.row_bytes for each in opened.inputs) / seconds / 1e6
        wrote = rows * sum(each.row_bytes for each in plan.outputs) / seconds / 1e6
        text += f": {rows / seconds:.0f} rows/s, {read:.1f} MB/s read, {wrote:.1f} MB/s written"
    return text
