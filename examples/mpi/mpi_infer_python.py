# SPDX-License-Identifier: MIT
"""Run the saved SimpleNet on every rank, each with an input and, where there are many, a device."""

import argparse

import torch

import torchspan


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["pt", "pt2"], default="pt")
    path = f"saved_simplenet_model_cpu.{parser.parse_args().format}"

    rank = torchspan.find_placement().rank
    batch = torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0]]) + rank
    with torchspan.load(path, devices="rank") as net:
        # One write, so that no other rank's lines come between these two.
        print(f"rank {rank}: result:\n{net(batch)}\n", end="", flush=True)


if __name__ == "__main__":
    main()
