# SPDX-License-Identifier: MIT
"""Save SimpleNet to a file that Python, Fortran and C can run on a CPU."""

import argparse

import torch
from simplenet import SimpleNet

import torchspan


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["pt", "pt2"], default="pt")
    path = f"saved_simplenet_model_cpu.{parser.parse_args().format}"

    torchspan.save(SimpleNet(), path, example=torch.ones(1, 5))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
