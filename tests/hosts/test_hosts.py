# SPDX-License-Identifier: MIT
"""Ranks across two hosts under each launcher, and what happens when one host is lost."""

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOINING = ROOT / "tests" / "data" / "joining_rank.py"
FAILING = ROOT / "tests" / "data" / "failing_rank.py"
PI = ROOT / "examples" / "ranks" / "pi.py"
MPI = ROOT / "examples" / "mpi"
ON_HOST = Path(__file__).parent / "on_host"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1")
RENDEZVOUS = ("--rdzv-backend=c10d", "--rdzv-endpoint")
LOG = {"TORCHSPAN_LOG": "info"}


def mpirun(hosts, ranks, *words, folder=ROOT, **environ):
    """Open MPI over both hosts, started on the first."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("there is no mpirun")
    names = ",".join(f"{host.name}:2" for host in hosts)
    passed = [word for name in environ for word in ("-x", name)]
    own = (mpirun, "--mca", "plm_rsh_agent", ON_HOST, "--host", names, "--wdir", folder, *passed)
    return hosts[0].start(*own, "-n", ranks, sys.executable, *words, **environ)


def torchrun(hosts, *words, **environ):
    """One torchrun on each host."""
    where = f"{hosts[0].name}:29400"
    return [host.start(*TORCHRUN, *RENDEZVOUS, where, *words, **environ) for host in hosts]


def by_slurm(hosts, *words, **environ):
    """One rank on each host, with the variables that srun sets."""
    shared = {
        "SLURM_JOB_ID": "77",
        "SLURM_STEP_ID": "0",
        "SLURM_NTASKS": "2",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_NODELIST": ",".join(host.name for host in hosts),
    }
    return [
        host.start(
            *(sys.executable, *words),
            **{**shared, **environ, "SLURM_PROCID": str(rank), "SLURM_NODEID": str(rank)},
        )
        for rank, host in enumerate(hosts)
    ]


def test_the_ranks_example_under_torchrun(hosts):
    ended = [one.end() for one in torchrun(hosts, PI)]
    assert [one.status for one in ended] == [0, 0], ended
    assert "pi is 3.1416, computed on cpu:0, cpu:0\n" in ended[0].output + ended[1].output


def test_the_ranks_example_under_launch(hosts):
    where = f"{hosts[0].name}:29400"
    words = (sys.executable, "-m", "torchspan", "launch", "-n", 2, "--nnodes", 2, "--rdzv", where)
    ended = [one.end() for one in [host.start(*words, PI) for host in hosts]]
    assert [one.status for one in ended] == [0, 0], ended
    assert "computed on cpu:0, cpu:0, cpu:0, cpu:0\n" in ended[0].output + ended[1].output


def test_the_ranks_example_under_open_mpi(hosts):
    ended = mpirun(hosts, 3, PI).end()
    assert ended.status == 0, ended
    assert ended.output == "pi is 3.1416, computed on cpu:0, cpu:0, cpu:0\n"


def test_the_mpi_example_under_open_mpi(hosts, tmp_path):
    folder = shutil.copytree(MPI, tmp_path / "mpi")
    saving = hosts[0].start("cd", folder, "&&", sys.executable, "pt2ts.py").end()
    assert saving.status == 0, saving
    ended = mpirun(hosts, 3, "mpi_infer_python.py", folder=folder).end()
    rows = ["[0., 2., 4., 6., 8.]", "[ 2.,  4.,  6.,  8., 10.]", "[ 4.,  6.,  8., 10., 12.]"]
    for rank, row in enumerate(rows):
        assert f"rank {rank}: result:\ntensor([{row}])\n" in ended.output, ended


def test_the_rendezvous_is_found_through_mpi4py(hosts):
    ended = mpirun(hosts, 3, JOINING, **LOG).end()
    assert "openmpi: [(0, 0, 2), (1, 1, 2), (2, 0, 1)] cablea" in ended.output, ended
    for rank, cable in enumerate(["cablea", "cablea", "cableb"]):
        assert f"rank {rank} met the others by mpi4py" in ended.errors
        assert re.search(rf"rank {rank} \d+ ms: gloo over {cable}, because", ended.errors)


def test_the_interface_is_found_under_torchrun(hosts):
    ended = [one.end() for one in torchrun(hosts, JOINING, **LOG)]
    both = ended[0].output + ended[1].output
    assert re.search(r"torchrun: \[\(0, 0, 1\), \(1, 0, 1\)\] cable[ab]", both), ended
    assert "gloo over cablea" in ended[0].errors
    assert "gloo over cableb" in ended[1].errors


def test_slurms_list_of_hosts_leads_to_rank_0(hosts):
    ended = [one.end() for one in by_slurm(hosts, JOINING, **LOG)]
    assert "slurm: [(0, 0, 1), (1, 0, 1)] cablea" in ended[0].output, ended
    assert f"rank 1 met the others by Slurm's first host, {hosts[0].name}" in ended[1].errors


@pytest.mark.parametrize("how", ["raise", "kill"])
def test_a_rank_that_fails_on_the_other_host_ends_this_one(hosts, how):
    ended = [one.end(60) for one in by_slurm(hosts, FAILING, 1, how, "torch", "with")]
    said = "failed with ValueError" if how == "raise" else r"\(process \d+ on \w+\) went away"
    assert re.search(rf"rank 0: RankError: rank 1 {said}", ended[0].errors), ended


def test_a_host_that_is_cut_off_ends_the_ranks_on_both_sides(hosts):
    running = by_slurm(hosts, FAILING, 9, "none", "sleep", "with")
    for one in running:
        one.wait_for("begins")
    hosts[0].ip("link", "set", hosts[0].cable, "down")
    try:
        ended = [one.end(40) for one in running]
    finally:
        hosts[0].ip("link", "set", hosts[0].cable, "up")
    for rank, one in enumerate(ended):
        seconds = float(re.search(r"RankError after ([\d.]+) s", one.output)[1])
        assert seconds < 30
        assert f"rank {rank}: RankError: rank {1 - rank}" in one.errors
