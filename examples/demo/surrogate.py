# SPDX-License-Identifier: MIT
"""The PyTorch side: a network that stands in for a physics scheme, run as usual, then saved once.

It takes temperature and moisture on the 60 levels of a column of air and gives the heating rate on
each level. A real one is trained first; here its weights are random.
"""

import sys

import numpy as np
import torch
from timing import report

import torchspan

LEVELS = 60
COLUMNS = 65536


class Surrogate(torch.nn.Module):
    """Heating rates (batch, levels) of columns (batch, temperature and moisture on each level)."""

    def __init__(self, levels):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2 * levels, 256),
            torch.nn.GELU(),
            torch.nn.Linear(256, 256),
            torch.nn.GELU(),
            torch.nn.Linear(256, levels),
        )

    def forward(self, columns):
        return self.layers(columns)


def main():
    torch.manual_seed(0)
    model = Surrogate(LEVELS).eval()
    columns = torch.randn(COLUMNS, 2 * LEVELS)
    with torch.inference_mode():
        heating = report("cpu", lambda: model(columns))
    np.save("columns.npy", columns.numpy())
    columns.numpy().tofile("columns.bin")  # for the programs in Fortran and C
    np.save("reference.npy", heating.numpy())
    np.save("heating.npy", heating.numpy())

    kinds = sorted({"cpu", *(device.kind for device in torchspan.devices("all"))})
    print(f"compiling net.pt2 for {', '.join(kinds)} ...", file=sys.stderr)
    torchspan.save(model, "net.pt2", example=columns[:8], devices=kinds)


if __name__ == "__main__":
    main()
