# SPDX-License-Identifier: MIT
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchspan import ArgumentError
from torchspan.cli._journal import Journal, identify

RUN = {"rows": 100, "block": 10, "inputs": [{"size": 5, "mtime_ns": 7}]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "y.npy.torchspan-run"


def begun(path, blocks=10):
    journal = Journal(path, create=True)
    journal.begin(RUN, blocks)
    return journal


def reopened(path):
    journal = Journal(path)
    journal.read()
    return journal


def test_a_new_journal_says_nothing_and_goes_when_it_is_never_begun(path):
    journal = Journal(path, create=True)
    journal.read()
    assert journal.run is None
    assert path.exists()
    journal.close()
    assert not path.exists()


def test_what_was_begun_is_read_again(path):
    begun(path).close()
    journal = reopened(path)
    assert (journal.run, journal.blocks, journal.todo()) == (RUN, 10, list(range(10)))
    journal.close()
    assert path.exists()


def test_marks_of_several_processes_add_up(path):
    first, second = begun(path), reopened(path)
    first.mark(0, 3)
    second.mark(7, 2)
    assert first.todo() == second.todo() == reopened(path).todo() == [3, 4, 5, 6, 9]
    assert path.read_bytes().endswith(b"\n###....##.")


@given(st.sets(st.integers(0, 39)))
def test_what_is_not_marked_is_to_do(tmp_path_factory, done):
    journal = begun(tmp_path_factory.mktemp("journal") / "j", 40)
    for block in done:
        journal.mark(block, 1)
    assert journal.todo() == sorted(set(range(40)) - done)
    journal.close()


def test_beginning_again_forgets_the_marks(path):
    journal = begun(path, 50)
    journal.mark(0, 50)
    journal.begin(RUN, 4)
    assert reopened(path).todo() == [0, 1, 2, 3]


def test_a_run_of_no_blocks_is_done(path):
    assert begun(path, 0).todo() == []
    assert reopened(path).todo() == []


def test_removing_is_the_end_of_it(path):
    journal = begun(path)
    journal.remove()
    assert not path.exists()
    journal.close()


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        b"[]\n...",
        b'{"torchspan-run": 2, "blocks": 3, "run": {}}\n...',
        b'{"torchspan-run": 1, "blocks": 3, "run": {}}\n..',
        b'{"torchspan-run": 1, "blocks": 3, "run": 5}\n...',
        b'{"blocks": 3}\n...',
        b"\xff\xfe\n...",
    ],
)
def test_a_file_that_is_no_journal_is_refused_and_left(path, content):
    path.write_bytes(content)
    journal = Journal(path, create=True)
    with pytest.raises(ArgumentError, match="is no journal that this torchspan can read"):
        journal.read()
    journal.close()
    assert path.read_bytes() == content


def test_two_runs_cannot_hold_one_journal(path):
    journal = begun(path)
    journal.lock()
    with pytest.raises(ArgumentError, match="another run is writing this output"):
        reopened(path).lock()
    journal.close()
    reopened(path).lock()


def test_the_lock_ends_with_its_process(path):
    begun(path).close()
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from torchspan.cli._journal import Journal\n"
        "Journal(Path(sys.argv[1])).lock()\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], timeout=60, check=False)
    assert done.returncode == -9
    reopened(path).lock()


def test_a_file_is_known_by_its_size_and_time(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"12345")
    first = identify(file)
    assert first["size"] == 5
    assert identify(file) == first
    file.write_bytes(b"123456")
    assert identify(file) != first
