# SPDX-License-Identifier: MIT
import subprocess
import sys
import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchspan
from torchspan import _replica
from torchspan._crew import Crew

CPU = torchspan.devices("cpu")[0]


@pytest.fixture(scope="module")
def crew():
    return Crew(CPU, 3)


@settings(deadline=None, max_examples=30)
@given(pieces=st.lists(st.integers(), max_size=50))
def test_every_piece_is_done_once(crew, pieces):
    done = []
    crew.share(pieces, done.append)
    assert sorted(done) == sorted(pieces)


def test_pieces_are_done_at_the_same_time_each_on_one_thread(crew):
    together = threading.Barrier(3, timeout=20)
    counts = []

    def work(piece):
        together.wait()
        counts.append(torch.get_num_threads())

    crew.share(range(3), work)
    assert counts == [1, 1, 1]


def test_the_first_error_arrives_and_the_rest_is_left(crew):
    done = []

    def work(piece):
        if piece == 2:
            raise KeyError(piece)
        time.sleep(0.01)
        done.append(piece)

    with pytest.raises(KeyError):
        crew.share(range(1000), work)
    assert len(done) < 500
    crew.share([1], done.append)


INTERRUPTED = """
import os, signal, time, torchspan
from torchspan._crew import Crew
crew, under_way = Crew(torchspan.devices("cpu")[0], 3), []

def work(piece):
    under_way.append(piece)
    if piece == 5:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    under_way.remove(piece)

try:
    crew.share(range(100_000), work)
except KeyboardInterrupt:
    print("interrupted with", under_way)
"""


def test_an_interrupt_waits_for_what_is_under_way():
    # A process of its own: pytest's workers need not run tests in the thread that signals reach.
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "interrupted with []\n"


def test_its_threads_end_with_it():
    before = set(threading.enumerate())
    crew = Crew(CPU, 2)
    own = set(threading.enumerate()) - before
    assert crew.size == len(own) == 2
    del crew
    for thread in own:
        thread.join(10)
    assert not any(thread.is_alive() for thread in own)


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_batches_give_the_same_on_any_number_of_threads(
    mlp_file, mlp, monkeypatch, devices, threads
):
    monkeypatch.setattr(_replica, "CACHE_BYTES", 1 << 16)
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.rand(1003, 64)
        with torchspan.load(mlp_file, devices=devices) as net, torch.no_grad():
            torch.testing.assert_close(net(x), mlp(x))
            torch.testing.assert_close(net(x[:900]), mlp(x[:900]))
    finally:
        torch.set_num_threads(before)
