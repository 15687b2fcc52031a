# SPDX-License-Identifier: MIT
"""Run a model over blocks of rows: read the next block and write the last one while one computes.

A block is marked in the journal only after its rows were flushed to the disk, and flushing is
shared by all blocks of a second: a run that is killed loses about a second of work and never has
a mark too early.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from torchspan.cli._journal import Journal
from torchspan.cli._npy import Array, PartFile
from torchspan.cli._plan import InputFile, Plan

__all__ = ["stream_blocks"]

SLOTS = 3
SYNC_SECONDS = 1.0


def stream_blocks(
    net: Callable[..., Any],
    plan: Plan,
    blocks: Sequence[int],
    inputs: Sequence[InputFile],
    parts: Sequence[PartFile],
    journal: Journal,
    advance: Callable[[int], None],
) -> None:
    """Run ``net`` over blocks, and write and record what it gives.

    Args:
        net: A model: arrays in, results into ``out``.
        plan: Which rows a block is, and what the outputs are.
        blocks: The blocks to run, in order.
        inputs: What to read.
        parts: Where to write.
        journal: Where to record.
        advance: Called with a number of rows when these were computed.

    Raises:
        OSError: The disk is full or fails; what was written until then is recorded.
    """
    recorder = _Recorder(parts, journal)
    try:
        with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as writer:
            _Pipeline(net, plan, inputs, recorder, reader, writer).run(blocks, advance)
    except BaseException:
        with suppress(OSError):
            recorder.settle()
        raise
    recorder.settle()


class _Slot:
    """Memory for one block, used again and again."""

    def __init__(self, plan: Plan, inputs: Sequence[InputFile], shared: dict[str, Array]) -> None:
        self._files = inputs
        self._shared = shared
        self._inputs = {
            each.name: np.empty((plan.block, *each.array.shape[1:]), _native(each))
            for each in inputs
            if each.batched
        }
        self._outputs = [np.empty((plan.block, *each.tail), each.dtype) for each in plan.outputs]

    def read(self, rows: range) -> list[Array]:
        """Fill the memory with rows of the files, and give the inputs of the call."""
        given: list[Array] = []
        for each in self._files:
            if each.batched:
                memory = self._inputs[each.name][: len(rows)]
                np.copyto(memory, each.array[rows.start : rows.stop])
                given.append(memory)
            else:
                given.append(self._shared[each.name])
        return given

    def results(self, rows: range) -> list[Array]:
        """Where the results of ``rows`` go."""
        return [memory[: len(rows)] for memory in self._outputs]


class _Recorder:
    """Writes blocks, and marks them once they are on the disk."""

    def __init__(self, parts: Sequence[PartFile], journal: Journal) -> None:
        self._parts = parts
        self._journal = journal
        self._written: list[int] = []
        self._synced = time.monotonic()

    def write(self, block: int, start: int, results: Sequence[Array]) -> None:
        for part, rows in zip(self._parts, results, strict=True):
            try:
                part.write(start, rows)
            except OSError as error:
                reason = f"{error.strerror}; what is done is kept, and the same command goes on"
                raise OSError(error.errno, reason, str(part.part)) from error
        self._written.append(block)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.settle()

    def settle(self) -> None:
        # Taken off first: after a failed flush nobody can say what reached the disk.
        written, self._written = sorted(self._written), []
        for part in self._parts:
            part.sync()
        while written:
            first, count = written[0], 1
            while count < len(written) and written[count] == first + count:
                count += 1
            self._journal.mark(first, count)
            del written[:count]
        self._synced = time.monotonic()


class _Pipeline:
    def __init__(
        self,
        net: Callable[..., Any],
        plan: Plan,
        inputs: Sequence[InputFile],
        recorder: _Recorder,
        reader: ThreadPoolExecutor,
        writer: ThreadPoolExecutor,
    ) -> None:
        self._net = net
        self._plan = plan
        self._recorder = recorder
        self._reader = reader
        self._writer = writer
        shared = {
            each.name: np.array(each.array, _native(each), order="C")
            for each in inputs
            if not each.batched
        }
        self._free = [_Slot(plan, inputs, shared) for _ in range(SLOTS)]
        self._reads: deque[tuple[int, _Slot, Future[list[Array]]]] = deque()
        self._writes: deque[tuple[_Slot, Future[None]]] = deque()

    def run(self, blocks: Sequence[int], advance: Callable[[int], None]) -> None:
        todo = deque(blocks)
        self._start_reads(todo)
        while self._reads:
            block, slot, reading = self._reads.popleft()
            rows = self._plan.rows_of(block)
            given, results = reading.result(), slot.results(rows)
            self._net(*given, out=results[0] if len(results) == 1 else tuple(results))
            writing = self._writer.submit(self._recorder.write, block, rows.start, results)
            self._writes.append((slot, writing))
            advance(len(rows))
            if not self._free:
                self._finish_write()
            self._start_reads(todo)
        while self._writes:
            self._finish_write()

    def _start_reads(self, todo: deque[int]) -> None:
        # One slot stays for the block that is being written.
        while todo and self._free and len(self._reads) < SLOTS - 1:
            block, slot = todo.popleft(), self._free.pop()
            self._reads.append(
                (block, slot, self._reader.submit(slot.read, self._plan.rows_of(block)))
            )

    def _finish_write(self) -> None:
        slot, writing = self._writes.popleft()
        writing.result()
        self._free.append(slot)


def _native(each: InputFile) -> np.dtype[Any]:
    return each.array.dtype.newbyteorder("=")
