# SPDX-License-Identifier: MIT
import time

import pytest
import torch
import torch.distributed as dist

import torchspan
from torchspan import ArgumentError


def test_a_world_knows_who_this_rank_is(world):
    place = torchspan.find_placement()
    assert (world.rank, world.size, world.local_rank) == (place.rank, place.size, place.local_rank)
    assert world.is_main == (world.rank == 0)
    assert world.placement.launcher == place.launcher
    assert world.placement.local_size == place.size
    assert f"rank {world.rank} of {world.size}" in repr(world)
    assert world.device == torchspan.devices("rank")[0]


def test_torch_distributed_runs_as_soon_as_joined(world):
    assert dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size()) == (world.rank, world.size)
    assert world.group is dist.group.WORLD
    assert "cpu:gloo" in world.backend
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total.tolist() == [world.size] * 2


def test_leaving_ends_torch_distributed_and_joining_again_works(world):
    for turn in range(3):
        world.close()
        assert world.closed
        assert not dist.is_initialized()
        world.close()
        with torchspan.join() as again:
            assert again.gather(turn) in (None, [turn] * again.size)


def test_joining_twice_gives_the_same_world_until_both_have_left(world):
    with torchspan.join() as inner:
        assert inner is world
    assert not world.closed
    world.barrier()


def test_a_closed_world_takes_no_calls(world):
    world.close()
    with pytest.raises(ArgumentError, match="this world is closed"):
        world.barrier()


def test_a_rank_that_leaves_early_is_not_taken_for_dead(world):
    last = world.size - 1
    world.barrier()
    if world.rank != last:
        world.close()
        return
    time.sleep(1.5)
    assert world._guard is None or world._guard.line.failure is None
