# SPDX-License-Identifier: MIT
"""One rank fails while the others do something: failing_rank.py RANK HOW OTHERS with|call."""

import ctypes
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import torchspan
from torchspan._world import _guard


def fail(how: str) -> None:
    if how == "raise":
        raise ValueError("the sample is upside down")
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "interrupt":
        raise KeyboardInterrupt


def work(what: str, world: torchspan.World, own: dist.ProcessGroup | None) -> None:
    if what == "reduce":
        world.all_reduce(torch.ones(4))
    elif what == "torch":
        dist.all_reduce(torch.ones(4))
    elif what == "group":
        dist.all_reduce(torch.ones(4), group=own)
    elif what == "sleep":
        time.sleep(60)
    elif what == "compute":
        stop = time.monotonic() + 60
        while time.monotonic() < stop:
            torch.ones(100, 100) @ torch.ones(100, 100)
    elif what == "stuck":
        # A mutex that is locked twice: no signal gets this thread out of the call.
        mutex, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
        library.pthread_mutex_lock(mutex)
        library.pthread_mutex_lock(mutex)


def run(world: torchspan.World, failing: int, how: str, what: str) -> None:
    own = dist.new_group() if what == "group" else None
    world.barrier()
    print(f"rank {world.rank} begins", flush=True)
    started = time.monotonic()
    try:
        if world.rank == failing:
            time.sleep(0.3)
            fail(how)
            time.sleep(60)
        work(what, world, own)
        print(f"rank {world.rank} noticed nothing", flush=True)
    except (torchspan.RankError, RuntimeError) as error:
        seconds = time.monotonic() - started
        print(f"rank {world.rank}: {type(error).__name__} after {seconds:.1f} s", flush=True)
        raise


def main() -> None:
    failing, how, what, manner = sys.argv[1:]
    _guard.PATIENCE_SECONDS = 2.0 if what == "stuck" else 20.0
    world = torchspan.join()
    if manner == "with":
        with world:
            run(world, int(failing), how, what)
    else:
        run(world, int(failing), how, what)


main()
