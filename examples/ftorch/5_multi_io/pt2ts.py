# SPDX-License-Identifier: MIT
"""Save a model of two inputs of different shapes that returns two results."""

import torch
from torch import Tensor

import torchspan


class Particles(torch.nn.Module):
    """Momentum and kinetic energy from velocity (n, 3) and mass (n, 1)."""

    def forward(self, velocity: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
        return mass * velocity, 0.5 * mass * (velocity**2).sum(dim=1, keepdim=True)


if __name__ == "__main__":
    path = "saved_multi_io_model_cpu.pt"
    torchspan.save(Particles(), path, example=(torch.ones(1, 3), torch.ones(1, 1)))
    print(f"wrote {path}")
