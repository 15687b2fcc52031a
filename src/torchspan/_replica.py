# SPDX-License-Identifier: MIT
"""A model on one device, run on some rows of a call: moved there, in chunks, and back.

On the CPU, large batches run in chunks whose intermediate results stay in its caches; on an
accelerator, rows in host memory stream through it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from torchspan import _accelerator
from torchspan._crew import Crew
from torchspan._devices import Device
from torchspan._errors import DeviceMemoryError, ModelError, TorchspanError
from torchspan._model_file import first_line
from torchspan._runners import Runner
from torchspan._split import cut_rows
from torchspan._staging import CHUNK_BYTES, Staging, write
from torchspan._workers import Worker

__all__ = ["Replica"]

# What one core's part of a chunk may hold at one time; measured on CPUs with 1 to 2 MB of level 2.
CACHE_BYTES = 2 << 20
LEAST_ROWS = 64


class Replica:
    """A runner with what it needs to be fed.

    Args:
        device: Where it computes.
        runner: The model opened there.
        cores: How many threads its worker may use.
        row_bytes: The live memory that a row needs; None where the rows must stay together.
    """

    def __init__(self, device: Device, runner: Runner, cores: int, row_bytes: int | None) -> None:
        self.device = device
        self.runner = runner
        self._cores = cores
        self._row_bytes = row_bytes
        self._worker: Worker | None = None
        self._staging: Staging | None = None
        self._crew: Crew | None = None
        self._starting = threading.Lock()
        self._home = device.torch

    @property
    def worker(self) -> Worker:
        """Its worker, started when it is first needed.

        Raises:
            ModelError: The process was forked after the worker was started.
        """
        if self._worker is None:
            self._worker = Worker(self.device, self._cores)
        if not self._worker.alive:
            raise ModelError(
                "the model is closed, Python is ending, or the model was opened before this "
                "process was forked, and threads do not survive a fork. Open the model in the "
                "process that calls it."
            )
        return self._worker

    @property
    def works_here(self) -> bool:
        """Whether the caller runs on its worker."""
        return self._worker is not None and self._worker.here

    def close(self) -> None:
        """End the worker when its work is done."""
        if self._worker is not None:
            self._worker.stop(wait=True)
        # A call that is under way keeps them until it is done.
        self._staging = self._crew = None

    def run(
        self,
        inputs: Sequence[Tensor],
        batched: Sequence[bool],
        rows: range | None,
        outs: Sequence[Tensor] | None,
    ) -> list[Tensor]:
        """Run some rows of a call.

        Args:
            inputs: The call's whole inputs, wherever they are.
            batched: Which of them have rows.
            rows: The rows to run; None where there is no batch.
            outs: Whole outputs to write those rows of; None to give back what there is.

        Returns:
            ``outs``, or the outputs of these rows on this device.

        Raises:
            DeviceMemoryError: The device or the host has too little memory.
            ModelError: The model failed.
        """
        try:
            return self._run(inputs, batched, rows, outs)
        except TorchspanError:
            raise
        except Exception as error:
            if isinstance(error, torch.OutOfMemoryError | MemoryError) or _no_memory(error):
                raise DeviceMemoryError(
                    f"{self.device} has too little memory for {_told(rows)}: {first_line(error)}. "
                    "Run smaller batches, or use more devices."
                ) from error
            raise ModelError(f"the model failed on {self.device}: {_brief(error)}") from error

    def _run(
        self,
        inputs: Sequence[Tensor],
        batched: Sequence[bool],
        rows: range | None,
        outs: Sequence[Tensor] | None,
    ) -> list[Tensor]:
        if rows is not None and outs is not None:
            if self._streams(inputs, outs, rows):
                self._stage().run(self.runner, inputs, batched, rows, outs)
                return list(outs)
            if self.chunks(len(rows)):
                self._run_chunks(inputs, batched, rows, outs)
                return list(outs)
        results = self._apply(inputs, batched, rows)
        if outs is None:
            return results
        _land(results, outs, rows)
        return list(outs)

    def _apply(
        self, inputs: Sequence[Tensor], batched: Sequence[bool], rows: range | None
    ) -> list[Tensor]:
        count = None if rows is None else len(rows)
        moved = []
        for value, has_rows in zip(inputs, batched, strict=True):
            part = value
            if rows is not None and has_rows and len(rows) != value.shape[0]:
                part = value[rows.start : rows.stop]
            part = part.to(self._home)
            # Kernels for accelerators are compiled for aligned memory; a slice may not be.
            if self._home.type != "cpu" and part.data_ptr() % 16:
                part = part.clone()
            moved.append(part)
        return self.runner(moved, count)

    def chunks(self, rows: int) -> bool:
        """Whether so many rows would be run in chunks, which need whole outputs to write to."""
        if self._home.type != "cpu" or not self._row_bytes:
            return False
        return rows > torch.get_num_threads() * self._cached_rows()

    def _cached_rows(self) -> int:
        """How many rows one core computes within its cache."""
        return max(LEAST_ROWS, CACHE_BYTES // (self._row_bytes or 1))

    def _run_chunks(
        self,
        inputs: Sequence[Tensor],
        batched: Sequence[bool],
        rows: range,
        outs: Sequence[Tensor],
    ) -> None:
        def run(chunk: range) -> None:
            _land(self._apply(inputs, batched, chunk), outs, chunk)

        threads = torch.get_num_threads()
        most = threads * self._cached_rows()
        if threads == 1 or not self.runner.parallel:
            for chunk in cut_rows(rows, most):
                run(chunk)
            return
        # As many chunks for one thread as for any other.
        each = -(-len(rows) // (-(-len(rows) // most) * threads))
        self._hire(threads).share(cut_rows(rows, each), run)

    def _hire(self, threads: int) -> Crew:
        with self._starting:
            if self._crew is None or self._crew.size != threads:
                self._crew = Crew(self.device, threads)
            return self._crew

    def _streams(self, inputs: Sequence[Tensor], outs: Sequence[Tensor], rows: range) -> bool:
        """Whether these rows go through staging: from host to host, and enough of them."""
        if not _accelerator.streams(self._home.type) or self._row_bytes is None:
            return False
        tensors = [*inputs, *outs]
        if any(each.device.type != "cpu" for each in tensors):
            return False
        if any(not each.ndim or each.shape[0] < rows.stop for each in outs):
            return False
        most = max(each.nbytes // max(1, each.shape[0]) for each in tensors if each.ndim)
        return most * len(rows) > CHUNK_BYTES // 8

    def _stage(self) -> Staging:
        if self._staging is None:
            self._staging = Staging(self.device, max(1, self._cores // 2))
        return self._staging


def _land(results: Sequence[Tensor], outs: Sequence[Tensor], rows: range | None) -> None:
    for result, whole in zip(results, outs, strict=True):
        # Results without a batch come whole with every part.
        target = whole
        if rows is not None and whole.ndim and result.shape != whole.shape:
            target = whole[rows.start : rows.stop]
        if target.shape != result.shape:
            raise ModelError(
                f"the model gave {tuple(result.shape)} where {tuple(target.shape)} was expected; "
                "its rows cannot be told apart. Load it with split=False."
            )
        write(target, result)


def _no_memory(error: Exception) -> bool:
    text = str(error)
    return "can't allocate memory" in text or "out of memory" in text


def _told(rows: range | None) -> str:
    return "this call" if rows is None else f"{len(rows)} rows"


def _brief(error: Exception) -> str:
    kind = type(error).__name__
    return first_line(error) if kind == "RuntimeError" else f"{kind}: {first_line(error)}"
