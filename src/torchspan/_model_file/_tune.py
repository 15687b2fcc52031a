# SPDX-License-Identifier: MIT
"""Builds for few rows and for many, each kept for the batches at which it was measured to win."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from torchspan._aoti import Opened, open_build
from torchspan._devices import Device
from torchspan._errors import BuildError
from torchspan._log import log
from torchspan._model_file._archive import BuildFiles, place_files
from torchspan._model_file._compile import build_checked
from torchspan._model_file._example import Example
from torchspan._model_file._program import count_weights, multiplies_by
from torchspan._model_file._target import FEW, MANY, Target
from torchspan._workers import Worker

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["find_ranges", "tuned_builds"]

ANY = ""
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)

# A build must win by this much, or it is not worth its place in the file.
GAIN = 0.95

# Below, a call's own cost is all there is to gain, and static_batches gains more of it. Above, each
# build holds too many weights once more.
LEAST_WEIGHTS, MOST_WEIGHTS = 1 << 12, 1 << 26

# What is spent on measuring one batch size, and how long a call may be for the next size.
SECONDS = 0.02
LONGEST = 0.1

Ranges = Mapping[str, tuple[int, int | None]]


def tuned_builds(
    program: ExportedProgram,
    example: Example,
    target: Target,
    plain: BuildFiles,
    check: bool,
    progress: Callable[[str], None],
) -> list[BuildFiles]:
    """The builds for some batches that are quicker there than ``plain``, which is for any.

    Args:
        program: The model.
        example: Inputs with a batch.
        target: What ``plain`` was made for; of this machine's own CPU level.
        plain: The build for any batch.
        check: Whether builds are compared with eager.
        progress: Called with a line of text at the start of each step.
    """
    made: dict[str, BuildFiles] = {}
    for tuned in _worth_trying(program, progress):
        each = replace(target, tuned=tuned)
        try:
            made[tuned] = build_checked(program, example, each, check, progress)
        except BuildError as error:
            # The build for any batch serves these batches too.
            progress(f"without {each.name}: {error}")
    if not made:
        return []
    progress(f"measuring {', '.join(built.build.name for built in made.values())}")
    with tempfile.TemporaryDirectory(prefix="torchspan-") as folder:
        opened = {
            tuned: _open(built, Path(folder) / (tuned or "any"), target.device)
            for tuned, built in {ANY: plain, **made}.items()
        }
        ranges = find_ranges(opened, example, target.device)
    kept = []
    for tuned, built in made.items():
        if tuned not in ranges:
            progress(f"without {built.build.name}, which is not quicker for this model")
            continue
        low, high = ranges[tuned]
        kept.append(replace(built, build=replace(built.build, min_batch=low, max_batch=high)))
    return kept


def find_ranges(opened: Mapping[str, Opened], example: Example, device: Device) -> Ranges:
    """For which batches the builds for few rows and for many are the quickest of all.

    Measured in a thread with one core, as the threads that share a large batch have.
    """
    answers: list[dict[str, list[float]] | BaseException] = []
    done = threading.Event()

    def measure() -> None:
        try:
            answers.append(_measure(opened, example))
        except BaseException as error:
            answers.append(error)
        done.set()

    worker = Worker(device, 1)
    worker.put(measure)
    done.wait()
    worker.stop(wait=True)
    if isinstance(answers[0], BaseException):
        raise answers[0]
    return pick_ranges(answers[0])


def pick_ranges(times: Mapping[str, Sequence[float]]) -> Ranges:
    """The ranges that times at the first of ``SIZES`` tell: few from the start, many to the end.

    Only an unbroken run of sizes counts, so that one stray figure makes a range shorter, not wrong.
    """
    wins = {
        tuned: [
            own <= GAIN * min(other[index] for name, other in times.items() if name != tuned)
            for index, own in enumerate(figures)
        ]
        for tuned, figures in times.items()
    }
    ranges: dict[str, tuple[int, int | None]] = {}
    few = _leading(wins.get(FEW, []))
    if few:
        ranges[FEW] = (1, SIZES[few - 1])
    many = _leading(wins.get(MANY, [])[::-1])
    if many:
        ranges[MANY] = (SIZES[len(times[MANY]) - many], None)
    return ranges


def _worth_trying(program: ExportedProgram, progress: Callable[[str], None]) -> list[str]:
    products = multiplies_by(program)
    weights = count_weights(program)
    if not products or weights < LEAST_WEIGHTS:
        return []
    if weights > MOST_WEIGHTS:
        progress(f"one build only: the model's {weights} weights would be stored again in each")
        return []
    return [FEW, MANY] if "matrix" in products else [MANY]


def _open(built: BuildFiles, folder: Path, device: Device) -> Opened:
    place_files(built, folder)
    return open_build(folder, device, runners=1)


def _measure(opened: Mapping[str, Opened], example: Example) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {tuned: [] for tuned in opened}
    for rows in SIZES:
        inputs = list(example.with_rows(rows).tensors.values())
        best = _take_turns(opened, inputs)
        for tuned, seconds in best.items():
            times[tuned].append(seconds)
        log.debug("%d rows: %s", rows, best)
        if best[ANY] > LONGEST:
            break
    return times


def _take_turns(opened: Mapping[str, Opened], inputs: list[torch.Tensor]) -> dict[str, float]:
    """The shortest call of each, in turns, so that noise hits all alike."""
    best = dict.fromkeys(opened, float("inf"))
    started = time.perf_counter()
    turns = 0
    with torch.no_grad():
        while turns < 3 or time.perf_counter() - started < SECONDS * len(opened):
            for tuned, run in opened.items():
                begun = time.perf_counter()
                run(inputs)
                best[tuned] = min(best[tuned], time.perf_counter() - begun)
            turns += 1
    return best


def _leading(wins: Sequence[bool]) -> int:
    return next((index for index, won in enumerate(wins) if not won), len(wins))
