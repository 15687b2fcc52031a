# SPDX-License-Identifier: MIT
"""Save SimpleNet to a file for devices of one kind."""

import argparse

import torch
from simplenet import SimpleNet

import torchspan


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device_type", choices=["cpu", "cuda", "xpu", "mps"], default="cuda")
    parser.add_argument("--format", choices=["pt", "pt2"], default="pt")
    options = parser.parse_args()
    path = f"saved_multigpu_model_{options.device_type}.{options.format}"

    torchspan.save(SimpleNet(), path, example=torch.ones(1, 5), devices=[options.device_type])
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
