# SPDX-License-Identifier: MIT
"""Run the trained script on two virtual CPUs, which share the rows of a batch."""

import torch

import torchspan


def main():
    x = torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    with torchspan.load("python_script.py", devices="cpu:0,cpu:1") as net:
        for row in net(x).tolist():
            print(",".join(f"{each:5.1f}" for each in row))


if __name__ == "__main__":
    main()
