# SPDX-License-Identifier: MIT
"""``torchspan compile``: add builds to a model file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from torchspan._model_file import compile, describe
from torchspan.cli._parser import add_command, add_tune_option, positive
from torchspan.cli._terminal import print_table, steps
from torchspan.cli.describe import BUILD_HEADS, build_rows

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Subparsers) -> None:
    """Add ``compile`` to the commands."""
    parser = add_command(
        subparsers,
        "compile",
        summary="add a build for another device, CPU, batch or precision to a .pt2 file",
        about="The build is compared with plain PyTorch before the file is written.",
        example="torchspan compile net.pt2 --device cuda",
    )
    parser.add_argument("model", metavar="MODEL", help="a .pt2 file, written by torchspan")
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="DEVICES",
        help="what to build for, such as 'cuda' or 'cpu,cuda' (default: cpu)",
    )
    parser.add_argument(
        "--cpu",
        metavar="LEVEL",
        help="CPU instructions to use, for machines other than this one: avx512, avx2 or baseline; "
        "on ARM neon or baseline (default: the most that this machine has)",
    )
    parser.add_argument(
        "--static-batch",
        type=positive,
        action="append",
        default=[],
        metavar="N",
        help="also make a build for batches of exactly N rows; may be repeated",
    )
    add_tune_option(parser)
    parser.add_argument(
        "--precision",
        default="float32",
        metavar="NAME",
        help="bfloat16 or tf32, which are quicker and less exact; float32, the default, is the "
        "model's own",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Add the builds and print them."""
    before = {build.name: build for build in describe(arguments.model).builds}
    with steps() as progress:
        after = compile(
            arguments.model,
            arguments.device,
            cpu=arguments.cpu,
            static_batches=arguments.static_batch,
            tuned=arguments.tune,
            precision=arguments.precision,
            progress=progress,
        )
    made = [build for build in after.builds if before.get(build.name) != build]
    if made:
        print_table(f"Added to {arguments.model}", BUILD_HEADS, build_rows(made))
    else:
        print(f"{arguments.model} held these builds already; they came out the same.")
    return 0
