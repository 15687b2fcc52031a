# SPDX-License-Identifier: MIT
"""Real processes join: the tests of tests/ranks, and each way of finding rank 0."""

import contextlib
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.launchers import LAUNCHERS, Running, launch, launch_by_variables

HERE = Path(__file__).parent
PROGRAM = HERE / "data" / "joining_rank.py"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return str(one.getsockname()[1])


def leftovers():
    return {
        entry for folder in ("/dev/shm", "/tmp") for entry in Path(folder).glob("torchspan-*-*")
    }


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_tests_of_ranks_pass_on_two(launcher):
    ended = launch(launcher, 2, *PYTEST, HERE / "ranks").end(200)
    assert ended.status == 0, ended.output + ended.errors
    assert len(re.findall(r"\d+ passed", ended.output)) == 1


def test_a_test_that_fails_on_one_rank_fails_the_run_and_hangs_nowhere(tmp_path):
    (tmp_path / "conftest.py").write_text((HERE / "ranks" / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(
        "def test_on_rank_1(world):\n"
        "    assert world.rank == 0, 'rank 1 is not like the others'\n"
        "    world.barrier()\n"
        "def test_after_it(world):\n"
        "    world.barrier()\n"
    )
    ended = launch("torchrun", 2, *PYTEST, "--rootdir", tmp_path, tmp_path).end(60)
    assert ended.status != 0
    assert "rank 1 is not like the others" in ended.errors
    assert "RankError: rank 1 failed with AssertionError" in ended.output


@pytest.mark.parametrize(
    ("launcher", "own"),
    [
        ("torchrun", False),
        ("torchrun", True),
        pytest.param("mpiexec", False, marks=pytest.mark.mpi),
    ],
)
def test_joining(launcher, own):
    before = leftovers()
    words = [PROGRAM, "own"] if own else [PROGRAM]
    ended = launch(launcher, 3, *words, environ={"TORCHSPAN_LOG": "info"}).end()
    name = "torchrun" if launcher == "torchrun" else "openmpi"
    interface = "None" if own else "lo"
    assert f"{name}: [(0, 0, 3), (1, 1, 3), (2, 2, 3)] {interface}" in ended.output, ended.errors
    assert ended.status == 0
    # Jobs of other tests that run now have files of their own, for a moment.
    stop = time.monotonic() + 30
    while leftovers() - before:
        assert time.monotonic() < stop
        time.sleep(0.1)
    if own:
        assert "joined the torch.distributed that was running already" in ended.errors
    else:
        assert re.search(r"rank 2 of 3 joined \(\d+\.\d ms\)", ended.errors)
        assert "gloo over lo, because ranks use cpu" in ended.errors
        way = "a file of this host's" if name == "openmpi" else "the store at"
        assert f"rank 1 met the others by {way}" in ended.errors


def test_two_jobs_at_once_on_one_host_do_not_meet():
    jobs = [launch("mpiexec", 2, PROGRAM) for _ in range(2)]
    for ended in [job.end() for job in jobs]:
        assert "openmpi: [(0, 0, 2), (1, 1, 2)]" in ended.output, ended.errors


def test_the_users_own_master_is_respected_under_mpiexec():
    port = free_port()
    environ = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHSPAN_LOG": "info"}
    ended = launch("mpiexec", 2, PROGRAM, environ=environ).end()
    assert "openmpi: [(0, 0, 2), (1, 1, 2)]" in ended.output, ended.errors
    assert f"rank 1 met the others by the store at 127.0.0.1:{port}" in ended.errors


SLURM = "SLURM_PROCID={0} SLURM_LOCALID={0} SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_NODEID=0 "
VARIABLES = {
    "slurm": SLURM + "SLURM_JOB_ID=77 SLURM_STEP_NODELIST=somewhere7",
    "flux": "FLUX_TASK_RANK={0} FLUX_TASK_LOCAL_ID={0} FLUX_JOB_SIZE=2 FLUX_JOB_ID=f3 "
    "FLUX_JOB_NNODES=1",
    "mpich": "PMI_RANK={0} PMI_SIZE=2 MPI_LOCALRANKID={0} MPI_LOCALNRANKS=2",
    "pals": "PALS_RANKID={0} PALS_LOCAL_RANKID={0} PALS_LOCAL_SIZE=2 PALS_APID=a-1 PMI_RANK={0} "
    "PMI_SIZE=2",
    "lsf": "JSM_NAMESPACE_RANK={0} JSM_NAMESPACE_SIZE=2 JSM_NAMESPACE_LOCAL_RANK={0} "
    "JSM_NAMESPACE_LOCAL_SIZE=2 LSB_JOBID=5",
}


def variables(text, **more):
    """What ranks 0 and 1 find in their environment."""
    pairs = [text.format(rank).split() for rank in range(2)]
    return [dict(pair.split("=", 1) for pair in each) | more for each in pairs]


@pytest.mark.parametrize("launcher", VARIABLES)
def test_one_host_under_launchers_that_are_not_here(launcher):
    ranks = launch_by_variables([PROGRAM], variables(VARIABLES[launcher]))
    ended = [rank.end(60) for rank in ranks]
    assert [one.status for one in ended] == [0, 0], ended
    assert f"{launcher}: [(0, 0, 2), (1, 1, 2)] lo" in ended[0].output


def test_two_hosts_of_slurms_list_with_ports_of_the_job():
    more = {
        "SLURM_STEP_NODELIST": "localhost,localhost2",
        "SLURM_JOB_ID": str(os.getpid()),
        "TORCHSPAN_LOG": "info",
    }
    ranks = launch_by_variables([PROGRAM], variables(SLURM, **more))
    ended = [rank.end(60) for rank in ranks]
    assert [one.status for one in ended] == [0, 0], ended
    assert "slurm: [(0, 0, 2), (1, 1, 2)]" in ended[0].output
    assert "rank 1 met the others by Slurm's first host, localhost" in ended[1].errors


def test_a_rank_that_cannot_join_ends_the_others():
    text = (
        "import sys, torchspan\n"
        "rank = torchspan.find_placement().rank\n"
        "torchspan.join('cpu:0,cpu:1' if rank == 1 else 'cpu')\n"
        "print('joined')\n"
    )
    ended = launch("mpiexec", 2, "-c", text).end(60)
    assert "joined" not in ended.output
    assert "ArgumentError: device='cpu:0,cpu:1' names 2 devices" in ended.errors
    assert "RankError: rank 1 failed with ArgumentError" in ended.errors


def test_a_rank_0_that_is_stopped_while_it_waits_leaves_nothing_behind():
    [waiting] = launch_by_variables([PROGRAM], variables(VARIABLES["pals"])[:1])
    opened = Path(f"/proc/{waiting.process.pid}/fd")
    stop = time.monotonic() + 60
    files = set()
    while not files:
        assert time.monotonic() < stop
        time.sleep(0.3)
        with contextlib.suppress(FileNotFoundError):
            links = [entry.readlink() for entry in opened.iterdir()]
            files = {link for link in links if link.name.startswith("torchspan-")}
    waiting.process.terminate()
    assert waiting.end(30).status == -signal.SIGTERM
    assert not any(file.exists() for file in files)


def test_different_backends_are_refused_on_all_ranks():
    text = (
        "import torchspan\n"
        "rank = torchspan.find_placement().rank\n"
        "torchspan.join(backend='gloo' if rank == 1 else None)\n"
    )
    ended = launch("mpiexec", 2, "-c", text).end(60)
    assert "the ranks ask for different backends: None, gloo" in ended.errors
    assert ended.status != 0


def test_a_forked_child_of_a_rank_does_no_harm():
    text = (
        "import os, sys, time, torchspan\n"
        "with torchspan.join() as world:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        world.__exit__(SystemExit, SystemExit(5), None); os._exit(5)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5\n"
        "    other = os.fork()\n"
        "    if other == 0:\n"
        "        time.sleep(60)\n"
        "    time.sleep(0.5)\n"
        "    os.kill(other, 15)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == -15\n"
        "    world.barrier()\n"
        "    world.print('all well')\n"
    )
    ended = launch("mpiexec", 2, "-W", "ignore", "-c", text).end(60)
    assert "all well" in ended.output, ended.errors
    assert ended.status == 0


def test_a_program_that_never_closes_leaves_in_order():
    text = "import torchspan\nworld = torchspan.join()\nworld.barrier()\nprint('done')\n"
    ended = launch("mpiexec", 2, "-c", text).end(60)
    assert (ended.status, ended.output.count("done")) == (0, 2), ended.errors


def test_alone_without_any_launcher():
    ended = Running([sys.executable, str(PROGRAM)]).end(60)
    assert "none: [(0, 0, 1)] lo" in ended.output, ended.errors
