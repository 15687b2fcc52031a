# SPDX-License-Identifier: MIT
"""Save SimpleNet as TorchScript: what the command pt2ts does, for one model."""

import argparse

import torch
from simplenet import SimpleNet

import torchspan


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filepath", default=".", help="the folder to write into")
    folder = parser.parse_args().filepath

    path = f"{folder}/saved_simplenet_model_cpu.pt"
    torchspan.save(SimpleNet(), path, example=torch.ones(1, 5))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
