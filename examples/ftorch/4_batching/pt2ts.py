# SPDX-License-Identifier: MIT
"""Save a network that takes any number of dimensions before its five features."""

import torch

import torchspan


class Weighted(torch.nn.Module):
    """The features, each times its number."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.arange(1.0, 6.0))

    def forward(self, batch):
        return batch * self.weights


if __name__ == "__main__":
    path = "saved_batching_model_cpu.pt"
    torchspan.save(Weighted(), path, example=torch.ones(1, 5))
    print(f"wrote {path}")
