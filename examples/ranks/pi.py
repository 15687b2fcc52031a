# SPDX-License-Identifier: MIT
"""Every rank sums a part of an integral on a device of its own; together they have pi."""

import torch

import torchspan

STEPS = 1_000_000


def main():
    with torchspan.join() as world:
        # Each rank takes every size-th step of the integral of 4 / (1 + x²) from 0 to 1.
        steps = torch.arange(world.rank, STEPS, world.size, device=world.device.torch)
        x = (steps + 0.5) / STEPS
        part = (4 / (1 + x * x)).sum() / STEPS

        whole = world.all_reduce(part)
        devices = world.gather(str(world.device))
        world.print(f"pi is {whole.item():.4f}, computed on {', '.join(devices or ())}")


if __name__ == "__main__":
    main()
