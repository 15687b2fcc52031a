# SPDX-License-Identifier: MIT
"""Rank 1 fails in the way named by the first argument; the second names what the others do."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import torchspan


def fail(how: str) -> None:
    if how == "raise":
        raise ValueError("the sample is upside down")
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "interrupt":
        raise KeyboardInterrupt


def work(what: str, world: torchspan.World) -> None:
    if what == "reduce":
        world.all_reduce(torch.ones(4))
    elif what == "torch":
        dist.all_reduce(torch.ones(4))
    elif what == "sleep":
        time.sleep(60)
    elif what == "python":
        stop = time.monotonic() + 60
        while time.monotonic() < stop:
            sum(range(1000))


def main() -> None:
    how, what, manner = sys.argv[1:]
    world = torchspan.join()
    if manner == "with":
        with world:
            run(world, how, what)
    else:
        run(world, how, what)


def run(world: torchspan.World, how: str, what: str) -> None:
    failing = int(os.environ.get("FAILING_RANK", "1"))
    world.barrier()
    started = time.monotonic()
    try:
        if world.rank == failing:
            time.sleep(0.3)
            fail(how)
        else:
            work(what, world)
            print(f"rank {world.rank} noticed nothing")
    except torchspan.RankError:
        print(f"rank {world.rank} ended after {time.monotonic() - started:.1f} s", flush=True)
        raise


main()
