# SPDX-License-Identifier: MIT
"""The saved network on several ranks, each with its rows of the columns and its own device."""

import numpy as np
import torch
from timing import report

import torchspan


def main():
    with torchspan.join() as world, torchspan.load("net.pt2", world.device) as net:
        columns = np.load("columns.npy", mmap_mode="r")
        mine = np.array(np.array_split(columns, world.size)[world.rank])
        devices = world.gather(str(world.device)) or []
        heating = report(" + ".join(devices), lambda: net(mine), world.barrier, world.print)
        parts = world.gather(torch.from_numpy(heating))
        if world.is_main:
            np.save("heating.npy", torch.cat(parts).numpy())


if __name__ == "__main__":
    main()
