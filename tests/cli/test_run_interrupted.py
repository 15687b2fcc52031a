# SPDX-License-Identifier: MIT
"""``torchspan run`` ended by force: Ctrl-C, kill -9, full disks; it goes on to the same bits."""

import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from torchspan.cli import main

SLOW = """
import os, time
import torch

weights = torch.linspace(-1, 1, 48).reshape(3, 16)
delay = float(os.environ.get("DELAY", "0"))

def forward(x):
    time.sleep(delay)
    return (x @ weights).tanh()
"""
WORDS = ("run", "slow.py", "x.npy", "-o", "y.npy", "--batch", "4")
COMMAND = [sys.executable, "-m", "torchspan", *WORDS]
WAIT = {"timeout": 120}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run, and what it gives when nothing comes between."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "slow.py").write_text(SLOW)
    x = np.random.default_rng(11).normal(size=(400, 3)).astype(np.float32)
    np.save(folder / "x.npy", x)
    names = [str(folder / name) for name in ("slow.py", "x.npy", "y.npy")]
    assert main(["run", *names[:2], "-o", names[2], "--batch", "4", "--quiet"]) == 0
    return folder


@pytest.fixture
def wanted(whole, tmp_path):
    """What the run must give in the end; its files lie in the test's own folder."""
    for name in ("slow.py", "x.npy"):
        shutil.copy2(whole / name, tmp_path)
    return (whole / "y.npy").read_bytes()


def started():
    """A run that takes some seconds, once it has recorded blocks, and has blocks left."""
    process = subprocess.Popen(
        COMMAND,
        env={**os.environ, "DELAY": "0.05"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not done_blocks():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def done_blocks():
    journal = Path("y.npy.torchspan-run")
    return journal.read_bytes().partition(b"\n")[2].count(b"#") if journal.exists() else 0


def test_ctrl_c_is_status_130_and_the_same_command_goes_on(wanted, torchspan_command):
    process = started()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(**WAIT)
    assert (process.returncode, out) == (130, "")
    done = done_blocks()
    assert 0 < done < 100
    assert err == (
        f"torchspan: {done * 4} of 400 rows are done; the same command goes on.\n"
        "torchspan: interrupted\n"
    )
    again = torchspan_command(*WORDS)
    assert (again.status, again.err) == (
        0,
        f"torchspan: going on: {done * 4} of 400 rows are done.\n",
    )
    assert Path("y.npy").read_bytes() == wanted
    assert not Path("y.npy.torchspan-run").exists()


def test_a_killed_run_goes_on_to_the_same_bits(wanted, whole, torchspan_command):
    process = started()
    process.kill()
    process.communicate(**WAIT)
    assert process.returncode == -9
    marks = Path("y.npy.torchspan-run").read_bytes().partition(b"\n")[2]
    done = [index for index, mark in enumerate(marks) if mark == ord("#")]
    assert 0 < len(done) < 100
    assert not Path("y.npy").exists()
    part, right = np.load("y.npy.part"), np.load(whole / "y.npy")
    for block in done:
        rows = slice(block * 4, block * 4 + 4)
        np.testing.assert_array_equal(part[rows], right[rows])
    again = torchspan_command(*WORDS)
    assert (again.status, "going on: " in again.err) == (0, True)
    assert Path("y.npy").read_bytes() == wanted


def test_a_limit_on_file_sizes_is_one_line(wanted, torchspan_command):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        COMMAND, preexec_fn=limit, capture_output=True, text=True, check=False, **WAIT
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "torchspan: error: y.npy.part: File too large.\n"
    assert torchspan_command(*WORDS).status == 0
    assert Path("y.npy").read_bytes() == wanted


def test_a_disk_that_fills_up_is_one_line_and_the_run_goes_on(wanted, tmp_path, torchspan_command):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    words = ("run", "slow.py", "x.npy", "-o", disk / "y.npy", "--batch", "4")
    try:
        full = torchspan_command(*words)
        early, late = full.err.splitlines()
        assert (full.status, full.out) == (1, "")
        assert early.startswith(
            f"torchspan: the outputs in {disk} need 25.0 KiB, and its disk has "
        )
        assert "y.npy.part: No space left on device; what is done is kept" in late
        subprocess.run(["mount", "-o", "remount,size=1m", str(disk)], check=True, **WAIT)
        again = torchspan_command(*words)
        assert (again.status, "going on: " in again.err) == (0, True)
        assert (disk / "y.npy").read_bytes() == wanted
    finally:
        subprocess.run(["umount", str(disk)], check=True, **WAIT)


def test_a_bar_is_shown_on_a_terminal_only_and_not_when_quiet(wanted):
    assert b"/400" in on_terminal(COMMAND, "0.02")
    assert on_terminal([*COMMAND, "--overwrite", "--quiet"], "0") == b""


def on_terminal(command, delay):
    """What a command says on stderr when that is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "DELAY": delay, "TERM": "xterm"},
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            chunk = os.read(ours, 4096)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    os.close(ours)
    process.communicate(**WAIT)
    assert process.returncode == 0
    return said
