# SPDX-License-Identifier: MIT
import subprocess
import sys
import threading

import pytest
import torch

import torchspan
from torchspan import Placement, _workers
from torchspan._workers import Worker, share_cores

CPU = torchspan.devices("cpu")[0]


def test_tasks_run_in_order_on_one_thread_with_its_own_count():
    before = torch.get_num_threads()
    seen = []
    worker = Worker(CPU, 3)
    for number in range(5):
        worker.put(
            lambda number=number: seen.append(
                (number, torch.get_num_threads(), threading.current_thread().name)
            )
        )
    worker.stop(wait=True)
    assert seen == [(number, 3, "torchspan cpu:0") for number in range(5)]
    assert torch.get_num_threads() == before
    assert not worker.alive


def test_stopping_from_its_own_thread_does_not_hang():
    worker = Worker(CPU, 1)
    done = threading.Event()
    worker.put(lambda: (worker.stop(wait=True), done.set()))
    assert done.wait(10)


@pytest.mark.parametrize(
    ("usable", "machine", "local_size", "parts", "wanted"),
    [
        (8, 8, 1, 2, 4),
        (8, 8, None, 2, 4),
        (8, 8, 4, 1, 2),  # nothing was bound: the ranks of a machine share it
        (2, 8, 4, 1, 2),  # the launcher bound this rank to two cores of its own
        (2, 8, 4, 4, 1),
        (8, 8, 16, 1, 1),
    ],
)
def test_shares(monkeypatch, usable, machine, local_size, parts, wanted):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(_workers, "usable_cores", lambda: usable)
    monkeypatch.setattr(_workers.os, "cpu_count", lambda: machine)
    place = Placement(0, 16, 0, local_size)
    assert share_cores(parts, place) == wanted


def test_the_users_thread_count_is_respected(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    monkeypatch.setattr(_workers.torch, "get_num_threads", lambda: 6)
    assert [share_cores(parts) for parts in (1, 2, 4, 9)] == [6, 3, 1, 1]


LEAVING = """
import sys, torch, torchspan
net = torchspan.load(torch.nn.Sequential(*[torch.nn.Linear(512, 512)] * 20), devices=sys.argv[1])
futures = [net.submit(torch.rand(4000, 512)) for _ in range(50)]
print("leaving")
"""


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_leaving_while_devices_work_does_not_crash(devices):
    done = subprocess.run(
        [sys.executable, "-c", LEAVING, devices], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


CALLED_AT_THE_END = """
import atexit, sys
def late():
    try:
        net.submit(torch.rand(4, 2)).result()
    except torchspan.ModelError as error:
        print(error)
atexit.register(late)
import torch, torchspan
net = torchspan.load(torch.nn.Linear(2, 2), devices="cpu:0,cpu:1")
if sys.argv[1] == "used":
    net(torch.rand(4, 2))
"""

STREAMING_AT_THE_END = """
import time, torch, torchspan
from torchspan import _staging
from torchspan._workers import Worker
_staging.CHUNK_BYTES = 40
cpu = torchspan.devices("cpu")[0]
worker, staging = Worker(cpu, 1), _staging.Staging(cpu, 1)
x, out = torch.rand(100, 10), torch.zeros(100, 10)
def call(inputs, rows):
    time.sleep(0.01)
    return inputs
def run():
    staging.run(call, [x], [True], range(100), [out])
    print(torch.equal(x, out))
worker.put(run)
time.sleep(0.2)
"""


@pytest.mark.parametrize("before", ["used", "unused"])
def test_calls_after_the_end_are_told_and_do_not_hang(before):
    done = subprocess.run(
        [sys.executable, "-c", CALLED_AT_THE_END, before],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "Python is ending" in done.stdout


def test_leaving_while_a_batch_streams_lets_it_land():
    done = subprocess.run(
        [sys.executable, "-c", STREAMING_AT_THE_END], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
