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
