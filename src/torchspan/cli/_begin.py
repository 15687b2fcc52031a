# SPDX-License-Identifier: MIT
"""Begin a run, or go on with one that was interrupted.

Done by the main rank alone; what comes out is handed to the others. A run goes on only if its
inputs, its model and its options are those that it began with: half a file of one model and half
of another would be worse than starting over.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torchspan._errors import ArgumentError
from torchspan.cli._journal import Journal, identify
from torchspan.cli._npy import PartFile
from torchspan.cli._plan import InputFile, OutputSpec, Plan
from torchspan.cli._terminal import format_bytes, say

__all__ = ["Job", "begin", "check_names", "journal_path", "make_parts"]


@dataclass(frozen=True)
class Job:
    """What the user asked for, as far as files are concerned.

    Attributes:
        model: The model file.
        inputs: The input files.
        outputs: The output files.
        precision: What the model computes in.
        batch: The rows of a block, where the user said so.
        overwrite: Whether outputs that are there may be replaced.
        restart: Whether an interrupted run is forgotten.
    """

    model: Path
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]
    precision: str
    batch: int | None
    overwrite: bool
    restart: bool


def journal_path(output: Path) -> Path:
    """Where the journal of a run lies, by its first output."""
    return output.with_name(output.name + ".torchspan-run")


def make_parts(job: Job, plan: Plan) -> list[PartFile]:
    """The files that a run writes."""
    return [
        PartFile(path, spec.dtype, (plan.rows, *spec.tail))
        for path, spec in zip(job.outputs, plan.outputs, strict=True)
    ]


def check_names(job: Job) -> None:
    """Check the names of the files against each other and against what is there.

    Raises:
        ArgumentError: Two outputs are one file, an output would replace what is read, or an output
            is there already.
    """
    outputs = [path.resolve() for path in job.outputs]
    if len(set(outputs)) < len(outputs):
        raise ArgumentError("two outputs have the same name. Give each a file of its own.")
    for path in (job.model, *job.inputs):
        if path.resolve() in outputs:
            raise ArgumentError(f"{path} is read, so it cannot be an output. Name another file.")
    for path in job.outputs:
        if not path.parent.is_dir():
            raise ArgumentError(f"there is no folder {path.parent} to write {path.name} into.")
    if not journal_path(job.outputs[0]).exists():
        _refuse([path for path in job.outputs if path.exists()], job)


def begin(
    job: Job,
    inputs: Sequence[InputFile],
    outputs: tuple[OutputSpec, ...],
    block: int,
) -> tuple[Plan, Journal]:
    """Begin a run, or go on with it.

    Args:
        job: What was asked for.
        inputs: The inputs.
        outputs: What the model gives for them.
        block: The rows of a block, for a run that begins; one that goes on keeps its own.

    Returns:
        The plan, and the journal, locked.

    Raises:
        ArgumentError: An interrupted run is not this one, or another process is at it.
    """
    rows = next(len(each.array) for each in inputs if each.batched)
    journal = Journal(journal_path(job.outputs[0]), create=True)
    try:
        journal.lock()
        if not job.restart:
            journal.read()
        if journal.run is None:
            plan = Plan(rows, block, outputs)
            _refuse([path for path in job.outputs if path.exists()], job)
            parts = make_parts(job, plan)
            _warn_of_space(parts)
            for part in parts:
                part.create()
            journal.begin(_identify(job, inputs, plan), plan.blocks)
        else:
            plan = Plan(rows, _known_block(journal, job, block), outputs)
            _compare(journal, job, _identify(job, inputs, plan))
            _check_parts(journal, job, plan)
    except BaseException:
        journal.close()
        raise
    return plan, journal


def _identify(job: Job, inputs: Sequence[InputFile], plan: Plan) -> dict[str, Any]:
    return {
        "model": identify(job.model),
        "inputs": [{**identify(each.path), "shared": not each.batched} for each in inputs],
        "outputs": [{**asdict(each), "tail": list(each.tail)} for each in plan.outputs],
        "names": [path.name for path in job.outputs],
        "rows": plan.rows,
        "block": plan.block,
        "precision": job.precision,
    }


def _known_block(journal: Journal, job: Job, block: int) -> int:
    known = (journal.run or {}).get("block")
    if not isinstance(known, int) or known < 1:
        return block
    if job.batch is not None and job.batch != known:
        raise ArgumentError(
            f"the interrupted run of {job.outputs[0]} goes by blocks of {known} rows, and --batch "
            f"says {job.batch}. Leave it out, or start over with --restart."
        )
    return known


def _compare(journal: Journal, job: Job, wanted: dict[str, Any]) -> None:
    known = journal.run or {}
    if known == wanted:
        return
    reasons = []
    if known.get("model") != wanted["model"]:
        reasons.append(f"{job.model} has changed")
    before = known.get("inputs")
    if not isinstance(before, list) or len(before) != len(job.inputs):
        reasons.append("it has other inputs")
    else:
        reasons += [
            f"{path} has changed"
            for path, old, new in zip(job.inputs, before, wanted["inputs"], strict=True)
            if old != new
        ]
    if known.get("names") != wanted["names"]:
        reasons.append(f"it writes {', '.join(map(str, known.get('names') or ['nothing']))}")
    if known.get("precision") != wanted["precision"]:
        reasons.append(f"its precision is {known.get('precision')}")
    raise ArgumentError(
        f"an interrupted run of {job.outputs[0]} is another one: "
        f"{'; '.join(reasons) or 'its model gives other outputs'}. Start over with --restart, or "
        "name another output."
    )


def _check_parts(journal: Journal, job: Job, plan: Plan) -> None:
    parts = make_parts(job, plan)
    if journal.todo():
        _refuse([part.path for part in parts if part.path.exists()], job)
        lost = [part.part for part in parts if not part.part.exists()]
    else:
        # It ended between the last block and the last new name.
        lost = [part.part for part in parts if not part.part.exists() and not part.path.exists()]
    if lost:
        raise ArgumentError(
            f"{lost[0]}, which an interrupted run wrote, is gone. Start over with --restart."
        )


def _warn_of_space(parts: Sequence[PartFile]) -> None:
    """Say early what would fail late; only said, for a disk may compress or grow."""
    needed: dict[Path, int] = {}
    for part in parts:
        folder = part.path.resolve().parent
        needed[folder] = needed.get(folder, 0) + part.nbytes
    for folder, number in needed.items():
        free = shutil.disk_usage(folder).free
        if number > free:
            say(
                f"the outputs in {folder} need {format_bytes(number)}, and its disk has "
                f"{format_bytes(free)} left."
            )


def _refuse(there: Sequence[Path], job: Job) -> None:
    if there and not job.overwrite:
        raise ArgumentError(
            f"{', '.join(map(str, there))} is there already. Name another output, or give "
            "--overwrite to replace it once the run is finished."
        )
