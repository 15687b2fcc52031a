# SPDX-License-Identifier: MIT
import sys
import time
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchspan import Placement, PlacementError, RankError
from torchspan._world import _rendezvous
from torchspan._world._mpi import broadcast_endpoint
from torchspan._world._rendezvous import choose_way, derive_ports, meet, open_hub
from torchspan._world._spoke import Endpoint, find_hub

TWO_HOSTS = {"SLURM_STEP_NODELIST": "a[1-2]"}


def place(launcher, local_size=None, rank=0):
    return Placement(rank, 4, rank, local_size, launcher, "7.0")


@pytest.mark.parametrize(
    ("placement", "environ", "way"),
    [
        (place("torchrun", 4), {"MASTER_ADDR": "a", "MASTER_PORT": "1"}, "master"),
        (place("openmpi", 4), {"MASTER_ADDR": "a", "MASTER_PORT": "1"}, "master"),
        (place("openmpi", 4), {}, "file"),
        (place("openmpi", 2), {}, "mpi"),
        (place("openmpi", 2), TWO_HOSTS, "mpi"),
        (place("mpich", 4), {}, "file"),
        (place("mpich"), {}, "mpi"),
        (place("pals", 4), {}, "file"),
        (place("lsf", 2), {}, "mpi"),
        (place("flux"), {"FLUX_JOB_NNODES": "1"}, "file"),
        (place("flux"), {"FLUX_JOB_NNODES": "2"}, "mpi"),
        (place("slurm"), TWO_HOSTS, "slurm"),
        (place("slurm"), {"SLURM_STEP_NODELIST": "a1"}, "file"),
        (place("slurm"), {}, "mpi"),
        (place("pmix"), TWO_HOSTS, "slurm"),
    ],
)
def test_the_way_to_rank_0(placement, environ, way):
    assert choose_way(placement, environ)[0] == way


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"MASTER_ADDR": "a"}, "MASTER_ADDR='a' is set, but MASTER_PORT is not"),
        ({"MASTER_PORT": "1", "MASTER_ADDR": " "}, "MASTER_PORT='1' is set, but MASTER_ADDR"),
        ({}, "RANK and WORLD_SIZE are set, but MASTER_ADDR and MASTER_PORT are not"),
    ],
)
def test_half_an_address_is_an_error(environ, message):
    with pytest.raises(PlacementError, match=message):
        choose_way(place("torchrun", 4), environ)


@given(st.text(), st.text())
def test_ports_of_a_job_are_its_own_and_below_the_ephemeral_ones(job, other):
    ports = derive_ports(job)
    assert ports == derive_ports(job)
    assert all(15_000 <= port < 30_000 for port in ports)
    assert len(set(ports)) == len(ports) >= 7
    if job != other:
        assert ports != derive_ports(other)


def test_rank_0_off_slurms_first_host_is_an_error(monkeypatch):
    monkeypatch.setenv("SLURM_STEP_NODELIST", "a[1-2]")
    monkeypatch.setenv("SLURM_NODEID", "1")
    clear_master(monkeypatch)
    with pytest.raises(PlacementError, match="rank 0 is not on a1.*--distribution"):
        meet(place("slurm"), 0, time.monotonic() + 1)


def test_taken_ports_are_passed_over_and_none_left_is_an_error(monkeypatch):
    monkeypatch.setenv("SLURM_STEP_NODELIST", "a[1-2]")
    monkeypatch.setenv("SLURM_NODEID", "0")
    clear_master(monkeypatch)
    taken, _ = open_hub(2, one_host=False)
    other, _ = open_hub(2, one_host=False)
    other.close()
    monkeypatch.setattr(_rendezvous, "derive_ports", lambda job: (taken.port, other_port))
    other_port = 0
    meeting = meet(place("slurm"), 0, time.monotonic() + 1)
    assert meeting.line.port != taken.port
    assert "a1" in meeting.way
    meeting.line.close()
    other_port = taken.port
    with pytest.raises(RankError, match=rf"none of the ports {taken.port}, .* is free on a1"):
        meet(place("slurm"), 0, time.monotonic() + 1)
    taken.close()


def test_a_master_that_does_not_answer_is_an_error(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "9")
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    with pytest.raises(RankError, match="rank 1 of 4 did not meet the others at 127.0.0.1:9"):
        meet(place("torchrun", 4, rank=1), 0, time.monotonic() + 1)


def test_a_rank_0_that_never_listens_is_an_error():
    endpoint = Endpoint(("127.0.0.1",), (9,), "token")
    with pytest.raises(RankError, match="rank 1 did not find rank 0 at 127.0.0.1 in time"):
        find_hub(endpoint, 1, time.monotonic() + 0.3)


def test_missing_mpi4py_is_an_error_with_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(RankError) as caught:
        broadcast_endpoint(place("openmpi", 2), lambda: None)
    assert "mpi4py, which tells them rank 0's address, cannot be imported" in str(caught.value)
    assert "pip install --no-binary mpi4py 'torchspan[mpi]'" in str(caught.value)
    assert "MASTER_ADDR" in str(caught.value)


class Communicator:
    """What mpi4py gives on rank 0, and what rank 0 sent by it."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def bcast(self, value, root):
        assert root == 0
        return value


def pretend_mpi(monkeypatch, rank, size):
    module = types.SimpleNamespace(
        MPI=types.SimpleNamespace(
            Is_initialized=lambda: True,
            COMM_WORLD=Communicator(rank, size),
            Get_library_version=lambda: "Some MPI v9\nmore",
        )
    )
    monkeypatch.setitem(sys.modules, "mpi4py", module)


def test_mpi4py_of_another_mpi_is_an_error_that_names_both(monkeypatch):
    pretend_mpi(monkeypatch, 0, 1)
    with pytest.raises(RankError) as caught:
        broadcast_endpoint(place("openmpi", 2, rank=3), lambda: None)
    assert "rank 3 of 4, mpi4py says rank 0 of 1" in str(caught.value)
    assert "another MPI (Some MPI v9)" in str(caught.value)


def test_rank_0_that_cannot_listen_tells_all(monkeypatch):
    pretend_mpi(monkeypatch, 0, 4)

    def listen():
        raise OSError("no sockets left")

    with pytest.raises(RankError, match="rank 0 cannot listen.*no sockets left.*MASTER_ADDR"):
        broadcast_endpoint(place("openmpi", 2), listen)


def clear_master(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
