# SPDX-License-Identifier: MIT
"""One worker a device: a thread that runs that device's work in order, with its share of the cores.

A worker sets a thread count, its own. torch takes the first such call of any thread as the default
of threads that have not computed yet, so the thread that starts a worker sets that default back.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

import torch

from torchspan._devices import Device, usable_cores
from torchspan._log import log
from torchspan._placement import Placement, find_placement

__all__ = ["Worker", "share_cores"]

_Task = Callable[[], None]
_starting = threading.Lock()
_running: weakref.WeakSet[Worker] = weakref.WeakSet()
_leaving = threading.Event()


class Worker:
    """A thread that runs tasks one after another.

    Args:
        device: The device whose work it does; it names the thread.
        cores: How many threads its arithmetic may use.
        serves: Whether other workers wait for its tasks: when Python ends, it runs them all.
    """

    def __init__(self, device: Device, cores: int, serves: bool = False) -> None:
        self.device = device
        self.cores = cores
        self.serves = serves
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._process = os.getpid()
        begun = threading.Event()
        # Not a method: a thread that held its worker would keep it, and so its model, alive.
        self._thread = threading.Thread(
            target=_work,
            args=(self._tasks, cores, begun, serves),
            name=f"torchspan {device}",
            daemon=True,
        )
        with _starting:
            default = torch.get_num_threads()
            self._thread.start()
            begun.wait()
            torch.set_num_threads(default)
        _running.add(self)
        log.debug("worker for %s has %d thread(s)", device, cores)

    @property
    def alive(self) -> bool:
        """Whether tasks would be run: not after :meth:`stop`, in a forked child or at the end."""
        if _leaving.is_set() and not self.serves:
            return False
        return self._process == os.getpid() and self._thread.is_alive()

    @property
    def here(self) -> bool:
        """Whether the caller is one of its tasks, which cannot wait for another one."""
        return self._thread is threading.current_thread()

    def put(self, task: _Task) -> None:
        """Have ``task`` run after those already put; it must not raise."""
        self._tasks.put(task)

    def stop(self, wait: bool = False) -> None:
        """End the thread after the tasks already put.

        Args:
            wait: Whether to return only when it has ended.
        """
        self._tasks.put(None)
        if wait and self._process == os.getpid() and self._thread is not threading.current_thread():
            self._thread.join()

    def __del__(self) -> None:
        self._tasks.put(None)


def share_cores(parts: int, placement: Placement | None = None) -> int:
    """How many cores each of ``parts`` workers of this process may use, at least one.

    The process's own are those of its affinity mask, or its part of them where the launcher bound
    nothing; ``OMP_NUM_THREADS`` is respected.
    """
    if os.environ.get("OMP_NUM_THREADS"):
        return max(1, torch.get_num_threads() // parts)
    place = placement or find_placement()
    cores = usable_cores()
    if cores == os.cpu_count() and place.local_size:
        cores = max(1, cores // place.local_size)
    return max(1, cores // parts)


def _work(
    tasks: SimpleQueue[_Task | None], cores: int, begun: threading.Event, serves: bool
) -> None:
    # A thread takes the default on its first look at the count, and would take it over ours.
    torch.get_num_threads()
    torch.set_num_threads(cores)
    begun.set()
    while (task := tasks.get()) is not None and (serves or not _leaving.is_set()):
        task()
        # Let go of the task's tensors before waiting for the next one.
        del task


@atexit.register
def _leave() -> None:
    """Wait for what is being computed: a thread inside torch when Python goes ends in a crash."""
    _leaving.set()
    for worker in sorted(_running, key=lambda each: each.serves):
        worker.stop(wait=True)
