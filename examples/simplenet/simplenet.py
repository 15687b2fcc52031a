# SPDX-License-Identifier: MIT
"""SimpleNet: one linear layer that doubles five numbers, and one forward pass of it."""

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
    parser.add_argument("--device_type", choices=["cpu", "cuda", "xpu", "mps"])
    device_type = parser.parse_args().device_type

    device = torchspan.devices(f"{device_type or 'cpu'}:0")[0]
    if device_type:
        print(f"SimpleNet forward pass on {device.kind.upper()} device {device.index}")
    with torchspan.load(SimpleNet(), device) as net:
        doubled = net(torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0]]))
    print(doubled.to(torch.int64))


if __name__ == "__main__":
    main()
