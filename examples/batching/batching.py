# SPDX-License-Identifier: MIT
"""One model for any number of rows: a column, a row of columns, and a whole grid in one call."""

import torch

import torchspan

LEVELS, NX, NY = 4, 6, 5

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(LEVELS, 16), torch.nn.Tanh(), torch.nn.Linear(16, LEVELS)
).eval()
torchspan.save(model, "column.pt2", torch.rand(2, LEVELS))

grid = (torch.arange(NY * NX * LEVELS) % 11 / 11).reshape(NY, NX, LEVELS)
with torchspan.load("column.pt2", devices="cpu") as net:
    one = net(grid[0, :1])
    row = net(grid[0])
    # The model takes (batch, levels): the same memory with two dimensions seen as one.
    whole = net(grid.reshape(-1, LEVELS)).reshape(grid.shape)
assert torch.allclose(whole, model(grid), atol=1e-5)
sums = [f"{result.double().sum():9.4f}" for result in (one, row, whole)]
print(f"sums of 1, {NX} and {NX * NY} columns:{''.join(sums)}")
