# SPDX-License-Identifier: MIT
"""Save a layer that doubles five numbers for one kind of device."""

import argparse

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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--device_type", choices=["cpu", "cuda", "hip", "xpu", "mps"], default="cpu"
    )
    kind = parser.parse_args().device_type
    path = f"saved_multigpu_model_{kind}.pt"
    torchspan.save(SimpleNet(), path, example=torch.ones(1, 5))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
