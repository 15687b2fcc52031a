# SPDX-License-Identifier: MIT
"""A time loop that calls a model every step, into its own memory, while it computes on."""

import numpy as np
import torch

import torchspan

STEPS, COLUMNS, LEVELS = 20, 3000, 64

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(LEVELS, 128), torch.nn.Tanh(), torch.nn.Linear(128, LEVELS)
).eval()
torchspan.save(model, "tendency.pt2", torch.rand(1, LEVELS))

column, level = np.ogrid[:COLUMNS, :LEVELS]
state = np.float32((7 * column + 3 * level) % 101) / 101
reference = state.copy()
tendency = np.empty_like(state)  # made once, written in every step

with torchspan.load("tendency.pt2", devices="cpu:0,cpu:1") as net:
    for _ in range(STEPS):
        pending = net.submit(state, out=tendency)
        advected = 0.5 * np.roll(state, 1, axis=0) + 0.5 * state  # while the devices work
        pending.result()
        state = advected + 0.01 * tendency

with torch.no_grad():
    for _ in range(STEPS):
        slope = model(torch.from_numpy(reference)).numpy()
        reference = 0.5 * np.roll(reference, 1, axis=0) + 0.5 * reference + 0.01 * slope
print(np.allclose(state, reference, atol=1e-5))
print(f"mean{state.mean(dtype=np.float64):8.4f}, first{state[0, 0]:8.4f}")
