# SPDX-License-Identifier: MIT
"""Save a layer of five numbers that has learned nothing yet."""

import torch

import torchspan


class Untrained(torch.nn.Module):
    """One linear layer of zeros."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 5, bias=False)
        torch.nn.init.zeros_(self.linear.weight)

    def forward(self, batch):
        return self.linear(batch)


if __name__ == "__main__":
    path = "saved_training_model_cpu.pt"
    torchspan.save(Untrained(), path, example=torch.ones(1, 5))
    print(f"wrote {path}")
