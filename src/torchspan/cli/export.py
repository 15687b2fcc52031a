# SPDX-License-Identifier: MIT
"""``torchspan export``: write a class and its weights as a model file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from torchspan._devices import parse_devices
from torchspan._errors import BuildError
from torchspan._model import load
from torchspan._model_file import relative_error, save
from torchspan._model_file._example import name_example, vary
from torchspan._source import load_source, parse_argument
from torchspan._weights import load_weights
from torchspan.cli._inputs import DTYPES, make_example, parse_dynamic, parse_shown
from torchspan.cli._parser import add_command, add_tune_option, positive
from torchspan.cli._terminal import say, steps

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["add_parser", "run"]

CHECKED_ROWS = (1, 5, 64)
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float16": 3e-2, "bfloat16": 1e-1}


def add_parser(subparsers: Subparsers) -> None:
    """Add ``export`` to the commands."""
    parser = add_command(
        subparsers,
        "export",
        summary="write a PyTorch model as a model file that runs on many devices",
        about="SOURCE is run to find the model. The model is exported as it evaluates (dropout "
        "off), and every build is compared with plain PyTorch before the file is written.",
        example="torchspan export simplenet.py:SimpleNet -o net.pt2 --example 1x5",
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="file.py:Name or package.module:Name, where Name is a torch.nn.Module, its class, or "
        "a function that returns one",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    _add_model_options(parser)
    _add_input_options(parser)
    _add_file_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Export the model."""
    model = load_source(arguments.source, arguments.arg).eval()
    if arguments.weights is not None:
        load_weights(model, Path(arguments.weights))
    dtype = DTYPES[arguments.dtype or "float32"]
    if arguments.dtype is not None:
        model.to(dtype)
    dynamic: dict[str, dict[int, str]] = {}
    for name, dimension, size in arguments.dynamic:
        dynamic.setdefault(name, {})[dimension] = size
    with steps() as progress:
        save(
            model,
            arguments.output,
            make_example(arguments.example, dtype, seed=1),
            devices=arguments.devices,
            dynamic_batch=not arguments.fixed_batch,
            dynamic=dynamic or None,
            static_batches=arguments.static_batch,
            tuned=arguments.tune,
            input_names=arguments.input_names,
            output_names=arguments.output_names,
            shared=arguments.shared,
            cpu=arguments.cpu,
            format=arguments.format,
            progress=progress,
        )
    print(f"wrote {arguments.output}")
    if arguments.check:
        _check(model, arguments, dtype)
    return 0


def _check(model: nn.Module, arguments: argparse.Namespace, dtype: torch.dtype) -> None:
    """Run the file that was written, and the model, on fresh inputs."""
    example = make_example(arguments.example, dtype, seed=2)
    batched = not arguments.fixed_batch
    shown = name_example(model, example, batched=batched, shared=arguments.shared)
    for device in dict.fromkeys(parse_devices(arguments.devices)):
        largest = relative = 0.0
        batches = CHECKED_ROWS if shown.rows is not None else (None,)
        with load(arguments.output, device) as net:
            for rows in batches:
                fresh = vary(shown if rows is None else shown.with_rows(rows), seed=3)
                with torch.no_grad():
                    wanted = _leaves(model(*fresh.positional, **fresh.by_keyword))
                got = _leaves(net(*fresh.tensors.values()))
                for ours, plain in zip(got, wanted, strict=True):
                    relative = max(relative, relative_error(ours, plain))
                    largest = max(largest, _difference(ours, plain))
        told = " and ".join(str(rows) for rows in batches) if batched else "the example's"
        say(f"compared {arguments.output} on {device} with the model, batch {told}")
        print(f"{device}: largest difference {largest:.1e}, relative {relative:.1e}")
        most = TOLERANCE.get(str(dtype).removeprefix("torch."), 1e-3)
        if not relative <= most:
            raise BuildError(
                f"{arguments.output} gives something else than the model on {device}: the relative "
                f"difference is {relative:.1e}, and at most {most:.0e} is right. Do not use it."
            )


def _leaves(result: object) -> list[Tensor]:
    return list(torch.utils._pytree.tree_leaves(result))


def _difference(ours: Tensor, plain: Tensor) -> float:
    if not plain.numel() or ours.shape != plain.shape:
        return 0.0
    wide = torch.complex128 if plain.is_complex() else torch.float64
    return float((ours.to(wide) - plain.to(wide)).abs().nan_to_num(0.0).max())


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(name.isidentifier() for name in names):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of names; write 'x,y'")
    return names


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--arg",
        type=parse_argument,
        action="append",
        default=[],
        metavar="VALUE",
        help="an argument of the class or function: '64', 'hidden=64', 'sizes=[5,5]'; may be "
        "repeated",
    )
    group.add_argument(
        "--weights", metavar="FILE", help="a state dict: .safetensors, or .pt from torch.save"
    )
    group.add_argument(
        "--dtype",
        choices=sorted(DTYPES),
        metavar="NAME",
        help="convert the model to this dtype, such as float64",
    )


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("its inputs and outputs")
    group.add_argument(
        "--example",
        type=parse_shown,
        action="append",
        required=True,
        metavar="SHAPE",
        help="an input's shape, batch first: '1x5', '8x3x224x224:float16', 'ids=1x5:int64'; "
        "repeat --example for each input",
    )
    group.add_argument("--input-names", type=_names, metavar="NAMES", help="such as 'x,y'")
    group.add_argument("--output-names", type=_names, metavar="NAMES", help="such as 'energy'")
    group.add_argument(
        "--shared",
        type=_names,
        default=[],
        metavar="NAMES",
        help="inputs that have no batch dimension, such as 'grid'",
    )
    group.add_argument(
        "--dynamic",
        type=parse_dynamic,
        action="append",
        default=[],
        metavar="NAME:DIM=SIZE",
        help="a further dimension of any size: 'x:2=nx'; may be repeated",
    )
    group.add_argument(
        "--fixed-batch",
        action="store_true",
        help="take exactly the examples' shapes, not batches of any size",
    )


def _add_file_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the file")
    group.add_argument(
        "--devices", default="cpu", help="what to compile for, such as 'cpu,cuda' (default: cpu)"
    )
    group.add_argument(
        "--cpu",
        metavar="LEVEL",
        help="CPU instructions to use: avx512, avx2 or baseline; on ARM neon or baseline "
        "(default: the most that this machine has)",
    )
    group.add_argument(
        "--static-batch",
        type=positive,
        action="append",
        default=[],
        metavar="N",
        help="also make a build for batches of exactly N rows; may be repeated",
    )
    add_tune_option(group)
    group.add_argument(
        "--format", choices=("pt2", "pt"), help="pt is TorchScript (default: by FILE's ending)"
    )
    group.add_argument(
        "--check",
        action="store_true",
        help="then run the file and the model on fresh inputs, and print the largest difference",
    )
