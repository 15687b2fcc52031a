# SPDX-License-Identifier: MIT
"""A world in one process; tests/ranks holds what is the same on any number of them."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist

import torchspan
from tests.launchers import launch
from torchspan import ArgumentError, DeviceError, RankError
from torchspan._world._failure import Failure
from torchspan._world._guard import Guard
from torchspan._world._line import Line


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GLOO_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)


def test_alone_there_is_nothing_to_find_and_nothing_is_left():
    handler, hook = signal.getsignal(signal.SIGTERM), sys.excepthook
    with torchspan.join() as world:
        assert (world.rank, world.size, world.local_rank, world.is_main) == (0, 1, 0, True)
        assert str(world.device) == "cpu:0"
        assert world.placement.launcher == "none"
        assert dist.get_world_size() == 1
        assert signal.getsignal(signal.SIGTERM) is handler
    assert not dist.is_initialized()
    assert sys.excepthook is hook or sys.excepthook.__module__.startswith("torch")
    assert "GLOO_SOCKET_IFNAME" not in os.environ
    assert repr(world) == "<torchspan.World rank 0 of 1 on cpu:0, closed>"


def test_the_device_may_be_chosen_and_pretended(monkeypatch):
    with torchspan.join("cpu:3") as world:
        assert str(world.device) == "cpu:3"
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    with torchspan.join() as world:
        assert (str(world.device), world.device.backing) == ("cuda:0", "cpu")
        assert "nccl" not in world.backend
        assert world.all_reduce(torch.ones(1, device=world.device.torch)).item() == 1


def test_wrong_arguments_are_named_and_leave_nothing_open():
    with pytest.raises(ArgumentError, match="timeout=0 is no positive number of seconds"):
        torchspan.join(timeout=0)
    with pytest.raises(ArgumentError, match="device='cpu:0,cpu:1' names 2 devices"):
        torchspan.join("cpu:0,cpu:1")
    with pytest.raises(DeviceError, match="'cuda:7' is not there"):
        torchspan.join("cuda:7")
    assert not dist.is_initialized()


def test_a_world_that_the_program_began_itself_is_left_running():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with torchspan.join() as world:
            assert world.placement == torchspan.Placement()
            assert world.group is dist.group.WORLD
            assert world.gather(3) == [3]
        assert dist.is_initialized()
    finally:
        dist.destroy_process_group()


def test_the_users_interface_stays(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with torchspan.join():
        pass
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"


def test_an_exception_passes_through_a_world_of_one():
    with pytest.raises(KeyError), torchspan.join() as world:
        raise KeyError("x")
    assert world.closed
    assert not dist.is_initialized()
    with pytest.raises(ArgumentError, match="this world is closed"):
        world.group.size()


def test_importing_torchspan_loads_no_mpi():
    text = "import sys, torchspan; assert not {'mpi4py'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)


@pytest.mark.parametrize(
    ("exception", "words"),
    [
        (ValueError("bad"), "rank 2 failed with ValueError: bad"),
        (AssertionError(), "rank 2 failed with AssertionError"),
        (SystemExit(4), "rank 2 ended with exit status 4"),
        (SystemExit("no data"), "rank 2 ended with exit status no data"),
        (KeyboardInterrupt(), "rank 2 was interrupted (Ctrl-C)"),
    ],
)
def test_a_failure_in_words(exception, words):
    failure = Failure.of(2, exception)
    assert failure.describe() == words
    assert isinstance(failure.error(), RankError)


def test_an_endless_message_is_cut():
    assert len(Failure.of(0, ValueError("x" * 10_000_000)).text) <= 4000


class QuietLine(Line):
    """A line without other ranks."""

    def __init__(self):
        super().__init__(0)
        self.reported = []

    def report(self, failure):
        self.reported.append(failure)

    def ranks_that_left(self, seconds):
        return {}

    def meet(self, facts, decide, deadline): ...
    def leave(self, *, ending): ...
    def farewell(self, seconds): ...
    def close(self): ...
    def abandon(self): ...


@pytest.fixture
def guarded():
    line = QuietLine()
    guard = Guard(line, lambda: None, lambda: None)
    yield line, guard
    guard.disarm()


def test_the_guard_restores_what_it_replaced(guarded):
    _, guard = guarded
    handler, hook = signal.getsignal(signal.SIGTERM), sys.excepthook
    guard.arm()
    guard.watch_unhandled()
    assert signal.getsignal(signal.SIGTERM) == guard._on_signal
    assert sys.excepthook == guard._on_unhandled
    guard.disarm()
    assert (signal.getsignal(signal.SIGTERM), sys.excepthook) == (handler, hook)


def test_sigterm_without_a_failure_goes_to_the_programs_own_handler(guarded):
    _, guard = guarded
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        guard.arm()
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    finally:
        guard.disarm()
        signal.signal(signal.SIGTERM, before)


def test_sigterm_after_a_failure_becomes_that_ranks_error_once(guarded):
    line, guard = guarded
    guard.arm()
    line.failure = Failure(3, "gone")
    with pytest.raises(RankError, match="rank 3 went away without a word"):
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert guard.ended


def test_a_failure_interrupts_what_waits(guarded):
    line, guard = guarded
    guard.arm()
    with pytest.raises(RankError, match="rank 1 failed with ValueError: no"):
        line._learn(Failure(1, "raised", "ValueError: no"))
        time.sleep(10)
    with pytest.raises(RankError, match="rank 1 failed"):
        guard.check()


def test_an_error_that_is_not_of_communication_is_its_own_reason(guarded):
    line, guard = guarded
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    assert guard.explain(error) is error
    gloo = RuntimeError("[gloo/transport] Connection closed by peer")
    line.failure = Failure(1, "gone")
    assert "rank 1 went away" in str(guard.explain(gloo))


def test_a_second_join_after_one_that_failed_works():
    text = (
        "import torchspan\n"
        "rank = torchspan.find_placement().rank\n"
        "for device in ('cpu:0,cpu:1', 'cpu'):\n"
        "    try:\n"
        "        world = torchspan.join(device)\n"
        "    except (torchspan.ArgumentError, torchspan.RankError) as error:\n"
        "        print(f'{rank} failed\\n', end='')\n"
        "print(f'{rank} joined {world.gather(rank)}\\n', end='')\n"
        "world.close()\n"
    )
    ended = launch("mpiexec", 2, "-c", text).end(60)
    assert "0 joined [0, 1]" in ended.output, ended.errors
    assert ended.output.count("failed") == 2
