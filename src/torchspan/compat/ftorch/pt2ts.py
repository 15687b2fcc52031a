# SPDX-License-Identifier: MIT
"""``pt2ts``: save a class and its trained state as TorchScript, by FTorch's command line."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from torchspan._errors import TorchspanError
from torchspan._weights import load_weights
from torchspan.compat.ftorch._script import check_script, read_tensors, write_script
from torchspan.compat.ftorch._trained import load_trained

__all__ = ["main"]

PRECISIONS = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``pt2ts``.

    Args:
        argv: The words after the command's name; the process's own by default.

    Returns:
        The exit status: 0, 1 for an error that was explained, 130 after Ctrl-C.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    for option in ("trace", "test"):
        if getattr(arguments, option) and arguments.input_tensor_file is None:
            parser.error(f"--{option} needs an input to call the model with: --input_tensor_file")
    try:
        _convert(arguments)
    except TorchspanError as error:
        print(f"pt2ts: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pt2ts: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


def _convert(arguments: argparse.Namespace) -> None:
    output: Path = arguments.output_model_file
    model = load_trained(
        arguments.model_definition_file, arguments.model_name, arguments.input_model_file
    )
    if arguments.model_weights is not None:
        load_weights(model, arguments.model_weights)
    inputs = None
    if arguments.input_tensor_file is not None:
        inputs = read_tensors(arguments.input_tensor_file)
    if arguments.precision is not None:
        dtype = PRECISIONS[arguments.precision]
        model.to(dtype)
        inputs = inputs and tuple(
            each.to(dtype) if each.is_floating_point() else each for each in inputs
        )
    model.eval()
    write_script(model, output, inputs if arguments.trace else None)
    print(f"wrote {output}")
    if arguments.test and inputs is not None:
        difference = check_script(model, output, inputs)
        print(f"{output} gives what the model gives: relative difference {difference:.1e}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pt2ts",
        description="Save a PyTorch model as TorchScript, which Fortran, C and C++ programs open. "
        "The model is saved as it evaluates; a program can put it back into training mode.",
        epilog="TorchScript is deprecated in PyTorch: 'torchspan export' writes .pt2 files, which "
        "programs in FTorch's API open too when they run on torchspan.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("model_name", metavar="MODEL_NAME", help="the model's class, or a function that makes one")
    add("--model_definition_file", metavar="F.py", type=Path, required=True,
        help="the file that defines it")  # fmt: skip
    add("--input_model_file", metavar="M.pt", type=Path, required=True,
        help="its trained state: what torch.save wrote of model.state_dict() or of the model; or "
        ".safetensors")  # fmt: skip
    add("--output_model_file", metavar="OUT.pt", type=Path, required=True,
        help="the TorchScript file to write")  # fmt: skip
    add("--input_tensor_file", metavar="T.pt", type=Path,
        help="what to call the model with, for --trace and --test: what torch.save wrote of a "
        "tensor, or of a list of one tensor for each input")  # fmt: skip
    add("--model_weights", metavar="W", type=Path,
        help="a file of weights that replace those of M.pt")  # fmt: skip
    add("--trace", action="store_true",
        help="record one call instead of translating the source: only the branches that this call "
        "takes are kept")  # fmt: skip
    add("--test", action="store_true", help="then compare the file with the model")
    add("--precision", choices=PRECISIONS, metavar="DTYPE",
        help=f"convert the model to {', '.join(PRECISIONS)} (default: as it is)")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
