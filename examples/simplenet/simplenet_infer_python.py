# SPDX-License-Identifier: MIT
"""Run the saved SimpleNet on the CPU."""

import argparse

import torch

import torchspan


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["pt", "pt2"], default="pt")
    path = f"saved_simplenet_model_cpu.{parser.parse_args().format}"

    with torchspan.load(path, devices="cpu") as net:
        print(net(torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0]])))


if __name__ == "__main__":
    main()
