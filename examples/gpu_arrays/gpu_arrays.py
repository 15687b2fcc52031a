# SPDX-License-Identifier: MIT
"""Save a model, and run it three times on numbers that stay in a device's memory."""

import argparse

import torch

import torchspan

STEPS = 3


class Double(torch.nn.Module):
    """Multiplies five numbers by 2."""

    def forward(self, x):
        return 2 * x


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    (device,) = torchspan.devices(options.device)
    torchspan.save(Double(), "double.pt2", example=torch.ones(2, 5), devices=[device.kind])

    # Where a device is pretended, its memory is the host's.
    x = torch.arange(5.0, device=device.torch).reshape(1, 5)
    y = torch.empty_like(x)
    with torchspan.load("double.pt2", devices=options.device) as net:
        for _ in range(STEPS):
            net(x, out=y)
            x, y = y, x
    print("[" + ",".join(f"{each:5.1f}" for each in x.flatten().tolist()) + "]")


if __name__ == "__main__":
    main()
