# SPDX-License-Identifier: MIT
"""Several that write one model file at the same time: nobody's build is lost, none is mixed up."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
import torch

import torchspan
from tests.zoo import ZOO
from torchspan import ModelFileError, _log
from torchspan._model_file import _archive, _lock, _save
from torchspan._model_file._archive import Archive, BuildFiles, add_builds, digest_files


@pytest.fixture
def path(tmp_path, mlp_file):
    """A model file of the test's own, alone in its folder."""
    folder = tmp_path / "own"
    folder.mkdir()
    return shutil.copy(mlp_file, folder / "net.pt2")


@pytest.fixture
def made(path, tmp_path):
    """Gives a build as a compiler would for one batch size: real files under another name."""
    with Archive(path) as archive:
        archive.unpack("data/aotinductor/model", tmp_path)
    files = tuple(each for each in tmp_path.iterdir() if each.is_file())
    first = torchspan.describe(path).builds[0]

    def make(rows):
        build = replace(first, min_batch=rows, max_batch=rows, digest=digest_files(files))
        return BuildFiles(build, files).called(f"cpu-b{rows}")

    return make


def names(path):
    return [each.name for each in torchspan.describe(path).builds]


def sums(path):
    with Archive(path) as archive:
        return archive.program_sums()


def test_a_build_that_was_added_while_another_one_compiled_stays(path, made, monkeypatch):
    def compiling(rows, meanwhile):
        def build(*arguments):
            meanwhile()
            return made(rows)

        return build

    def other():
        monkeypatch.setattr(_save, "build_checked", compiling(5, lambda: None))
        torchspan.compile(path, tuned=False)

    before = names(path)
    monkeypatch.setattr(_save, "build_checked", compiling(3, other))
    torchspan.compile(path, tuned=False)
    assert names(path) == [*before, "cpu-b5", "cpu-b3"]


def test_builds_added_all_at_once_are_all_there(path, made, mlp):
    before, program = names(path), sums(path)
    ready = threading.Barrier(8)

    def add(rows):
        ready.wait(60)
        add_builds(path, program, [made(rows)])

    threads = [threading.Thread(target=add, args=(rows,)) for rows in range(2, 10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(names(path)) == sorted([*before, *(f"cpu-b{rows}" for rows in range(2, 10))])
    assert os.listdir(path.parent) == ["net.pt2"]
    x = torch.rand(9, 64)
    with torchspan.load(path, devices="cpu") as net:
        torch.testing.assert_close(net(x), mlp(x).detach())


def test_a_model_saved_over_the_one_that_is_compiled_gets_no_build_of_it(
    path, made, monkeypatch, model_file
):
    def build(*arguments):
        shutil.copy(model_file("mixing"), path.with_name("new")).replace(path)
        return made(3)

    monkeypatch.setattr(_save, "build_checked", build)
    with pytest.raises(ModelFileError, match="was saved anew while.*Nothing was added"):
        torchspan.compile(path, tuned=False)
    assert path.read_bytes() == model_file("mixing").read_bytes()
    assert os.listdir(path.parent) == ["net.pt2"]


def test_saving_waits_for_a_build_that_is_being_written(path, made, monkeypatch):
    """The later one wins, and wins whole: saved last, the file holds what was saved."""
    writing, go = threading.Event(), threading.Event()
    append = _archive._append

    def slow(*arguments):
        writing.set()
        assert go.wait(60)
        append(*arguments)

    monkeypatch.setattr(_archive, "_append", slow)
    adding = threading.Thread(target=add_builds, args=(path, sums(path), [made(3)]))
    adding.start()
    assert writing.wait(60)
    # TorchScript is written by the same hand, and needs no compiler.
    script = ZOO["script"]
    saving = threading.Thread(
        target=torchspan.save, args=(script.make(), path, script.example()), kwargs={"format": "pt"}
    )
    saving.start()
    saving.join(0.5)
    assert saving.is_alive()
    go.set()
    adding.join(60)
    saving.join(60)
    assert torchspan.describe(path).kind == "jit"
    assert os.listdir(path.parent) == ["net.pt2"]


HOLD = """
import sys, time
from pathlib import Path
from torchspan._model_file._archive import written_aside
with written_aside(Path(sys.argv[1])) as aside:
    aside.write_text("half")
    print("there", flush=True)
    time.sleep(600)
"""


def test_a_writer_that_was_killed_stands_in_nobodys_way(path, made):
    killed = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout.readline() == "there\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait(60)
    killed.stdout.close()
    assert len(os.listdir(path.parent)) == 3
    before = names(path)
    add_builds(path, sums(path), [made(3)])
    assert names(path) == [*before, "cpu-b3"]
    assert os.listdir(path.parent) == ["net.pt2"]


def test_a_file_system_without_locks_is_said_and_written_to(path, made, monkeypatch, capfd):
    def flock(handle, how):
        raise OSError(_archive.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_lock.fcntl, "flock", flock)
    monkeypatch.setattr(_log, "_said", set())
    before = names(path)
    add_builds(path, sums(path), [made(3)])
    assert names(path) == [*before, "cpu-b3"]
    assert "without locks (No locks available). Let only one process" in capfd.readouterr().err
    assert os.listdir(path.parent) == ["net.pt2"]
