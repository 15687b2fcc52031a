# SPDX-License-Identifier: MIT
"""``torchspan run`` on several ranks: each does its part, any number of them goes on."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SLOW = """
import os, time
from pathlib import Path
import torch

weights = torch.linspace(-1, 1, 48).reshape(3, 16)
delay = float(os.environ.get("DELAY", "0"))
rank = os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
Path(f"rank-{rank}").write_text(str(os.getpid()))

def forward(x):
    time.sleep(delay)
    if os.environ.get("FAIL") == rank and len(x) > 2:
        raise ValueError(f"nothing goes on rank {rank}")
    return (x @ weights).tanh()
"""
RUN = ("run", "slow.py", "x.npy", "-o", "y.npy", "--batch", "4")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
MPIEXEC = ("mpiexec", "--oversubscribe", "-n")
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
WAIT = {"timeout": 150}


def command(launcher, ranks):
    own = ("-m", "torchspan", *RUN)
    if launcher == "torchrun":
        return [*TORCHRUN, str(ranks), *own]
    if shutil.which("mpiexec") is None:
        pytest.skip("needs mpiexec")
    return [*MPIEXEC, str(ranks), sys.executable, *own]


def start(launcher, ranks, **environ):
    return subprocess.Popen(
        command(launcher, ranks),
        env={**os.environ, **ROOT, "OMP_NUM_THREADS": "1", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process):
    try:
        return process.communicate(**WAIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


@pytest.fixture
def wanted(tmp_path, torchspan_command):
    """What the run must give, as one rank gives it."""
    (tmp_path / "slow.py").write_text(SLOW)
    np.save("x.npy", np.random.default_rng(11).normal(size=(400, 3)).astype(np.float32))
    words = [word.replace("y.npy", "whole.npy") for word in RUN]
    assert torchspan_command(*words).status == 0
    Path("rank-0").unlink()
    return Path("whole.npy").read_bytes()


def marks():
    journal = Path("y.npy.torchspan-run")
    return journal.read_bytes().partition(b"\n")[2] if journal.exists() else b""


def kill_one_rank(process, rank):
    """End one rank by force, once every rank has recorded blocks; the launcher ends the others."""
    deadline = time.monotonic() + 100
    third = len(marks()) // 3
    while not third or b"#" not in marks()[:third] or b"#" not in marks()[2 * third :]:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
        third = len(marks()) // 3
    os.kill(int(Path(f"rank-{rank}").read_text()), signal.SIGKILL)
    finish(process)
    assert process.returncode != 0
    assert b"." in marks()
    assert not Path("y.npy").exists()


@pytest.mark.mpi
def test_three_ranks_are_killed_and_two_go_on(wanted):
    kill_one_rank(start("mpiexec", 3, DELAY="0.15"), rank=1)
    assert sorted(path.name for path in Path().glob("rank-*")) == ["rank-0", "rank-1", "rank-2"]
    done = marks().count(b"#")
    process = start("torchrun", 2)
    out, err = finish(process)
    assert process.returncode == 0, err
    assert f"torchspan: going on: {done * 4} of 400 rows are done." in err
    assert err.count("going on") == 1
    assert out.count("\n") == 1
    assert out.startswith(f"y.npy: 400 rows, {400 - done * 4} of them now, in ")
    assert " on 2 ranks: " in out
    assert Path("y.npy").read_bytes() == wanted
    assert not list(Path().glob("y.npy.*"))


def test_two_ranks_are_killed_and_one_goes_on(wanted, torchspan_command):
    kill_one_rank(start("torchrun", 2, DELAY="0.1"), rank=0)
    again = torchspan_command(*RUN)
    assert (again.status, "going on: " in again.err) == (0, True)
    assert Path("y.npy").read_bytes() == wanted


def test_when_a_rank_fails_all_do_with_its_error(wanted, torchspan_command):
    process = start("torchrun", 2, FAIL="1")
    started = time.monotonic()
    _, err = finish(process)
    assert process.returncode != 0
    assert time.monotonic() - started < 60
    assert "torchspan: error: " in err
    assert "nothing goes on rank 1" in err
    assert torchspan_command(*RUN).status == 0
    assert Path("y.npy").read_bytes() == wanted


def test_what_cannot_be_done_is_said_by_the_main_rank(wanted):
    Path("y.npy").write_bytes(b"precious")
    process = start("torchrun", 2)
    out, err = finish(process)
    assert process.returncode != 0
    assert out == ""
    assert "torchspan: error: y.npy is there already." in err
    assert Path("y.npy").read_bytes() == b"precious"


def test_a_rank_opens_its_own_device_unless_told_otherwise(wanted):
    environ = {"TORCHSPAN_PRETEND_CUDA": "2", "TORCHSPAN_LOG": "info"}
    process = start("torchrun", 2, **environ)
    _, err = finish(process)
    assert process.returncode == 0
    opened = sorted(line.split(" on ")[1] for line in err.splitlines() if "opened slow.py" in line)
    assert [line.split(" ")[0] for line in opened] == ["cuda:0", "cuda:1"]
    assert Path("y.npy").read_bytes() == wanted
