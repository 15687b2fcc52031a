# SPDX-License-Identifier: MIT
"""Run the saved SimpleNet on two devices of one kind, each with an input of its own."""

import argparse

import torch

import torchspan


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device_type", choices=["cpu", "cuda", "xpu", "mps"], default="cuda")
    parser.add_argument("--format", choices=["pt", "pt2"], default="pt")
    options = parser.parse_args()
    path = f"saved_multigpu_model_{options.device_type}.{options.format}"
    count = 1 if options.device_type == "mps" else 2  # no machine has more than one MPS device

    for index in range(count):
        batch = torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0]]) + index
        with torchspan.load(path, devices=f"{options.device_type}:{index}") as net:
            print(f"Output on device {index}: {net(batch)}")


if __name__ == "__main__":
    main()
