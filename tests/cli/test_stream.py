# SPDX-License-Identifier: MIT
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from torchspan.cli import _stream
from torchspan.cli._journal import Journal
from torchspan.cli._npy import PartFile
from torchspan.cli._plan import InputFile, OutputSpec, Plan
from torchspan.cli._stream import stream_blocks


def double(x, out):
    np.multiply(x, 2, out=out)


class Stage:
    """The files of one run in a folder, with a journal."""

    def __init__(self, folder, rows=50, block=4):
        self.x = np.random.default_rng(3).normal(size=(rows, 3)).astype(np.float32)
        self.inputs = [InputFile(Path("x.npy"), "x", self.x, True)]
        self.plan = Plan(rows, block, (OutputSpec("float32", (3,)),))
        self.part = PartFile(folder / "y.npy", "float32", self.x.shape)
        self.part.create()
        self.part.open()
        self.journal = Journal(folder / "journal", create=True)
        self.journal.begin({}, self.plan.blocks)

    def run(self, net, advance=lambda rows: None):
        todo = self.journal.todo()
        stream_blocks(net, self.plan, todo, self.inputs, [self.part], self.journal, advance)

    def result(self):
        return np.load(self.part.part)


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def test_every_row_is_run_once_and_in_order(stage):
    rows, seen = [], []

    def net(x, out):
        seen.append(x[:, 0].copy())
        double(x, out)

    stage.run(net, rows.append)
    np.testing.assert_array_equal(stage.result(), stage.x * 2)
    np.testing.assert_array_equal(np.concatenate(seen), stage.x[:, 0])
    assert sum(rows) == 50
    assert stage.journal.todo() == []


@pytest.mark.parametrize(("rows", "block"), [(0, 4), (1, 4), (4, 4), (5, 4), (7, 100), (9, 1)])
def test_any_number_of_rows_and_blocks(tmp_path, rows, block):
    stage = Stage(tmp_path, rows, block)
    stage.run(double)
    np.testing.assert_array_equal(stage.result(), stage.x * 2)


def test_only_the_blocks_asked_for_are_touched(stage):
    stage.journal.mark(0, 5)
    stage.journal.mark(7, 1)
    stage.run(double)
    done = [row for block in (*range(5), 7) for row in stage.plan.rows_of(block)]
    assert not stage.result()[done].any()
    rest = sorted(set(range(50)) - set(done))
    np.testing.assert_array_equal(stage.result()[rest], stage.x[rest] * 2)


def test_shared_inputs_are_given_whole_and_several_outputs_land_apart(stage, tmp_path):
    grid = np.arange(3, dtype=">f4")
    stage.inputs.append(InputFile(Path("grid.npy"), "grid", grid, False))
    stage.plan = Plan(50, 4, (OutputSpec("float32", (3,)), OutputSpec("float64", ())))
    total = PartFile(tmp_path / "z.npy", "float64", (50,))
    total.create()
    total.open()

    def net(x, shared, out):
        assert shared.dtype == np.float32
        np.add(x, shared, out=out[0])
        out[1][:] = x.sum(1, dtype=np.float64)

    files = [stage.part, total]
    todo = stage.journal.todo()
    stream_blocks(net, stage.plan, todo, stage.inputs, files, stage.journal, lambda rows: None)
    np.testing.assert_array_equal(stage.result(), stage.x + np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(np.load(total.part), stage.x.sum(1, dtype=np.float64))


def test_reading_computing_and_writing_overlap(stage, monkeypatch):
    """The second block is read, and the first written, while the model holds still."""
    writing = threading.Event()
    real = PartFile.write

    def write(self, start, rows):
        writing.set()
        real(self, start, rows)

    monkeypatch.setattr(PartFile, "write", write)
    calls = []

    def net(x, out):
        calls.append(len(x))
        if len(calls) == 2:
            assert writing.wait(10)
        double(x, out)

    stage.run(net)
    np.testing.assert_array_equal(stage.result(), stage.x * 2)


def test_an_error_of_the_model_keeps_what_is_done(stage):
    calls = []

    def net(x, out):
        calls.append(1)
        if len(calls) == 6:
            raise ValueError("row of nonsense")
        double(x, out)

    with pytest.raises(ValueError, match="row of nonsense"):
        stage.run(net)
    assert stage.journal.todo() == list(range(5, 13))
    np.testing.assert_array_equal(stage.result()[:20], stage.x[:20] * 2)
    stage.run(double)
    np.testing.assert_array_equal(stage.result(), stage.x * 2)


def test_ctrl_c_keeps_what_is_done(stage):
    def net(x, out):
        if x[0, 0] == stage.x[8, 0]:
            raise KeyboardInterrupt
        double(x, out)

    with pytest.raises(KeyboardInterrupt):
        stage.run(net)
    assert stage.journal.todo() == list(range(2, 13))


def test_a_full_disk_is_explained_and_keeps_what_is_done(stage, monkeypatch):
    real = os.pwrite
    room = [4 * 12 * 3]

    def limited(file, data, position):
        if file != stage.part._file:
            return real(file, data, position)
        if not room[0]:
            raise OSError(28, "No space left on device")
        written = real(file, data[: room[0]], position)
        room[0] -= written
        return written

    monkeypatch.setattr(os, "pwrite", limited)
    with pytest.raises(OSError, match="what is done is kept") as caught:
        stage.run(double)
    assert caught.value.filename == str(stage.part.part)
    assert stage.journal.todo() == list(range(3, 13))
    room[0] = 10**9
    stage.run(double)
    np.testing.assert_array_equal(stage.result(), stage.x * 2)


def test_nothing_is_marked_that_could_not_be_flushed(stage, monkeypatch):
    real = PartFile.sync
    broken = [True]

    def sync(self):
        if broken.pop():
            broken.append(False)
            raise OSError(5, "Input/output error")
        broken.append(False)
        real(self)

    monkeypatch.setattr(PartFile, "sync", sync)
    monkeypatch.setattr(_stream, "SYNC_SECONDS", 1e9)
    with pytest.raises(OSError, match="Input/output error"):
        stage.run(double)
    assert stage.journal.todo() == list(range(13))


def test_marks_follow_the_flush_and_never_lead_it(stage, monkeypatch):
    order = []
    real_sync, real_mark = PartFile.sync, Journal.mark

    def sync(self):
        real_sync(self)
        order.append("sync")

    def mark(self, first, count):
        order.append((first, count))
        real_mark(self, first, count)

    monkeypatch.setattr(PartFile, "sync", sync)
    monkeypatch.setattr(Journal, "mark", mark)
    monkeypatch.setattr(_stream, "SYNC_SECONDS", 0.0)
    stage.run(double)
    assert order[0] == "sync"
    marks = [each for each in order if each != "sync"]
    assert marks == [(block, 1) for block in range(13)]
    assert all(order[order.index(each) - 1] == "sync" for each in marks)


def test_marks_wait_for_the_next_flush(stage, monkeypatch):
    marks = []
    real = Journal.mark
    monkeypatch.setattr(Journal, "mark", lambda self, *run: (marks.append(run), real(self, *run)))
    monkeypatch.setattr(_stream, "SYNC_SECONDS", 1e9)
    stage.run(double)
    assert marks == [(0, 13)]
