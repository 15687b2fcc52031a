# SPDX-License-Identifier: MIT
"""Save the tendency of a decay: a network that negates five numbers."""

import torch

import torchspan


class Tendency(torch.nn.Module):
    """One linear layer: minus its input."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 5, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(-torch.eye(5))

    def forward(self, state):
        return self.linear(state)


if __name__ == "__main__":
    path = "saved_looping_model_cpu.pt"
    torchspan.save(Tendency(), path, example=torch.ones(1, 5))
    print(f"wrote {path}")
