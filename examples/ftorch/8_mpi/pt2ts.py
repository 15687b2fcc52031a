# SPDX-License-Identifier: MIT
"""Save a layer that doubles five numbers."""

import torch

import torchspan


class SimpleNet(torch.nn.Module):
    """Doubles its input of five numbers."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 5, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(2 * torch.eye(5))

    def forward(self, batch):
        return self.linear(batch)


if __name__ == "__main__":
    path = "saved_simplenet_model_cpu.pt"
    torchspan.save(SimpleNet(), path, example=torch.ones(1, 5))
    print(f"wrote {path}")
