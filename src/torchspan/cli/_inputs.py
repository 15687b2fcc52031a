# SPDX-License-Identifier: MIT
"""Example inputs as a command line says them: ``1x5``, ``8x3x224x224:float16``, ``ids=1x5:int64``.

Floating inputs are drawn from a normal distribution; whole numbers are 0 or 1, which are valid
indices into anything that is not empty.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from torchspan._errors import ArgumentError

__all__ = ["DTYPES", "Shown", "make_example", "parse_dynamic", "parse_shown"]

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
        *(torch.complex64, torch.complex128),
    )
}

_SHOWN = re.compile(r"(?:([A-Za-z_]\w*)=)?(scalar|[1-9]\d*(?:x[1-9]\d*)*)(?::(\w+))?", re.ASCII)
_DYNAMIC = re.compile(r"([A-Za-z_]\w*):(\d+)=([A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True)
class Shown:
    """One example input.

    Attributes:
        name: The argument that it is for; None where the order tells.
        shape: Its shape.
        dtype: Its dtype; None for the model's.
    """

    name: str | None
    shape: tuple[int, ...]
    dtype: torch.dtype | None

    def draw(self, default: torch.dtype, generator: torch.Generator) -> Tensor:
        """Random values."""
        dtype = self.dtype or default
        if dtype.is_floating_point or dtype.is_complex:
            wide = torch.complex128 if dtype.is_complex else torch.float64
            return torch.randn(self.shape, dtype=wide, generator=generator).to(dtype)
        return torch.randint(0, 2, self.shape, generator=generator).to(dtype)


def parse_shown(text: str) -> Shown:
    """Parse one ``--example``."""
    match = _SHOWN.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no example input; write '1x5', '8x3x224x224:float16', 'scalar:float64' "
            "or, with the argument's name, 'x=1x5:int64'"
        )
    name, shape, dtype = match.groups()
    if dtype is not None and dtype not in DTYPES:
        raise argparse.ArgumentTypeError(
            f"{text!r} has dtype {dtype!r}, which is not known; known are {', '.join(DTYPES)}"
        )
    sizes = () if shape == "scalar" else tuple(map(int, shape.split("x")))
    return Shown(name, sizes, None if dtype is None else DTYPES[dtype])


def parse_dynamic(text: str) -> tuple[str, int, str]:
    """Parse one ``--dynamic``: input, dimension, name of the size."""
    match = _DYNAMIC.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} names no dimension; write 'x:2=nx' for dimension 2 of input x, counted "
            "from 0"
        )
    return match[1], int(match[2]), match[3]


def make_example(
    shown: Sequence[Shown], default: torch.dtype, seed: int
) -> tuple[Tensor, ...] | dict[str, Tensor]:
    """Draw all example inputs.

    Args:
        shown: What to draw.
        default: The dtype of those that say none.
        seed: The same seed gives the same values; torch's own generator is left alone.

    Returns:
        Tensors by name where the examples have names, else in their order.

    Raises:
        ArgumentError: Some have names and some have none, or two have the same.
    """
    generator = torch.Generator().manual_seed(seed)
    tensors = tuple(each.draw(default, generator) for each in shown)
    named = {each.name: tensor for each, tensor in zip(shown, tensors, strict=True)}
    if set(named) == {None}:
        return tensors
    if None in named or len(named) < len(tensors):
        raise ArgumentError(
            "some of the examples have names and some have none, or two have the same. Name all "
            "of them, each differently, or give all in the order of the model's arguments."
        )
    return {str(name): tensor for name, tensor in named.items()}
