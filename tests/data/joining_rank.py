# SPDX-License-Identifier: MIT
"""Joins and prints what it found; with an argument, starts torch.distributed itself before."""

import os
import sys

import torch.distributed as dist

import torchspan

if "own" in sys.argv:
    dist.init_process_group("gloo")
world = torchspan.join(timeout=60)
ranks = world.gather((world.rank, world.local_rank, world.placement.local_size))
world.print(f"{world.placement.launcher}: {ranks} {os.environ.get('GLOO_SOCKET_IFNAME')}")
world.close()
if "own" in sys.argv:
    dist.barrier()
    dist.destroy_process_group()
assert not dist.is_initialized()
