# SPDX-License-Identifier: MIT
"""``torchspan launch``: the words it makes for torchrun and mpiexec, and real ranks under both."""

import signal
import sys
from pathlib import Path

import pytest
from torch.distributed import run as torchrun
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError

from tests.launchers import Running
from torchspan import _accelerator
from torchspan.cli import launch

DATA = Path(__file__).parents[1] / "data"
LAUNCH = [sys.executable, "-m", "torchspan", "launch"]
MPI = [[], pytest.param(["--mpi"], marks=pytest.mark.mpi)]


@pytest.fixture
def torchrun_words(monkeypatch, torchspan_command):
    """What torchrun would be given; its own parser must take it."""

    def give(*words):
        seen = []
        monkeypatch.setattr(torchrun, "run", seen.append)
        assert torchspan_command("launch", *words).status == 0
        return seen[0]

    return give


@pytest.fixture
def mpiexec_words(monkeypatch, torchspan_command):
    """What mpiexec would be given."""

    def give(*words, status=0):
        seen = []
        monkeypatch.setattr(launch.shutil, "which", lambda name: f"/mpi/{name}")
        monkeypatch.setattr(launch, "_run_mpiexec", lambda words: seen.append(words) or status)
        assert torchspan_command("launch", "--mpi", *words).status == status
        return seen[0]

    return give


def test_torchrun_on_one_host(torchrun_words):
    given = torchrun_words("-n", "3", "a.py", "--to", "b", "-n", "9")
    assert (given.nproc_per_node, given.standalone, given.local_addr) == ("3", True, "127.0.0.1")
    assert (given.training_script, given.training_script_args) == ("a.py", ["--to", "b", "-n", "9"])
    assert not given.module


def test_torchrun_on_more_hosts(torchrun_words):
    given = torchrun_words("-n", "2", "--nnodes", "1:4", "--rdzv", "head:29400", "-m", "pkg.main")
    assert (given.nnodes, given.rdzv_endpoint, given.rdzv_backend) == ("1:4", "head:29400", "c10d")
    assert (given.module, given.training_script) == (True, "pkg.main")


def test_torchrun_takes_further_options(torchrun_words):
    given = torchrun_words("-n", "2", "--options=--max-restarts 3 --role 'my part'", "a.py")
    assert (given.max_restarts, given.role) == (3, "my part")


@pytest.mark.parametrize(("found", "ranks"), [(0, "1"), (4, "4")])
def test_without_a_number_there_is_a_rank_for_each_accelerator(
    monkeypatch, torchrun_words, mpiexec_words, found, ranks
):
    monkeypatch.setattr(_accelerator, "count", lambda: found)
    assert torchrun_words("a.py").nproc_per_node == ranks
    assert mpiexec_words("a.py")[1:3] == ["-n", ranks]


def test_threads_are_shared_out_unless_they_were_set(monkeypatch, torchrun_words):
    monkeypatch.setattr(launch, "usable_cores", lambda: 8)
    torchrun_words("-n", "3", "a.py")
    assert launch.os.environ["OMP_NUM_THREADS"] == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    torchrun_words("-n", "3", "a.py")
    assert launch.os.environ["OMP_NUM_THREADS"] == "5"


def test_mpiexec_gets_its_own_options_before_the_program(mpiexec_words):
    given = mpiexec_words("-n", "2", "--options=--host 'a b'", "-m", "pkg.main", "--deep")
    own = ["/mpi/mpiexec", "-n", "2", "--host", "a b"]
    assert given == [*own, sys.executable, "-m", "pkg.main", "--deep"]


def test_exit_statuses_of_mpiexec_pass_through(mpiexec_words):
    mpiexec_words("-n", "2", "a.py", status=7)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--mpi", "--nnodes", "2", "a.py"], 1, "--nnodes and --rdzv are torchrun's"),
        (["--nnodes", "2", "a.py"], 1, "--nnodes and --rdzv go together"),
        (["--rdzv", "a:1", "a.py"], 1, "--nnodes and --rdzv go together"),
        (["-n", "0", "a.py"], 2, "'0' is not a whole number from 1 up"),
        (["-n", "2"], 2, "PROGRAM"),
    ],
)
def test_words_that_make_no_sense(torchspan_command, words, status, message):
    done = torchspan_command("launch", *words)
    assert done.status == status
    assert message in done.err


def test_without_mpiexec_the_cure_is_named(monkeypatch, torchspan_command):
    monkeypatch.setattr(launch.shutil, "which", lambda name: None)
    done = torchspan_command("launch", "--mpi", "-n", "2", "a.py")
    assert done.status == 1
    assert "there is no mpiexec on the PATH. Install an MPI" in done.err


def test_hosts_that_lose_each_other_are_an_error_in_one_line(monkeypatch, torchspan_command):
    def lose(arguments):
        raise RendezvousConnectionError("The connection to the C10d store has failed.")

    monkeypatch.setattr(torchrun, "run", lose)
    done = torchspan_command("launch", "-n", "1", "--nnodes", "2", "--rdzv", "a:1", "a.py")
    assert done.status == 1
    assert "the hosts did not meet, or lost each other: The connection" in done.err


@pytest.mark.parametrize("mpi", MPI)
def test_ranks_join_and_a_module_may_be_named(mpi):
    ended = Running([*LAUNCH, "-n", "2", *mpi, str(DATA / "joining_rank.py")]).end()
    name = "openmpi" if mpi else "torchrun"
    assert ended.status == 0, ended
    assert f"{name}: [(0, 0, 2), (1, 1, 2)] lo" in ended.output
    ended = Running([*LAUNCH, "-n", "1", *mpi, "-m", "json.tool", "--help"]).end()
    assert (ended.status, "json.tool" in ended.output) == (0, True), ended


@pytest.mark.parametrize("mpi", MPI)
@pytest.mark.parametrize(("how", "status"), [("exit", 3), ("kill", 128 + signal.SIGKILL)])
def test_the_status_is_the_failed_ranks_and_there_is_no_stack(mpi, how, status):
    words = [str(DATA / "failing_rank.py"), "1", how, "sleep", "with"]
    ended = Running([*LAUNCH, "-n", "2", *mpi, *words]).end()
    assert ended.status == status, ended
    assert "torchspan: rank 0: RankError: rank 1" in ended.errors
    assert "Traceback" not in ended.errors
    if not mpi:
        assert "torchspan: rank 1 was the first to fail" in ended.errors


@pytest.mark.parametrize("mpi", MPI)
def test_ctrl_c_ends_all_without_a_stack(mpi):
    words = [str(DATA / "failing_rank.py"), "9", "none", "sleep", "with"]
    running = Running([*LAUNCH, "-n", "2", *mpi, *words])
    running.wait_for("begins", times=2)
    running.interrupt()
    ended = running.end(40)
    assert ended.status == 128 + signal.SIGINT
    assert "Traceback" not in ended.errors
    assert len(ended.errors.splitlines()) < 10
