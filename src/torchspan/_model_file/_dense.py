# SPDX-License-Identifier: MIT
"""Tensors that hold their values in memory, one beside the other; what is said of all others."""

from __future__ import annotations

import torch
from torch import Tensor

from torchspan._errors import ArgumentError

__all__ = ["is_dense", "require_dense"]


def is_dense(tensor: Tensor) -> bool:
    """Whether a tensor holds its values in memory, one beside the other."""
    return (
        tensor.layout is torch.strided
        and not tensor.is_nested
        and not tensor.is_quantized
        and not tensor.is_meta
    )


def require_dense(tensor: Tensor, what: str) -> None:
    """Refuse a tensor whose memory no model file can read.

    Args:
        tensor: The tensor.
        what: What to call it in an error.

    Raises:
        ArgumentError: It is nested, sparse, quantized, or on the meta device.
    """
    if is_dense(tensor):
        return
    if tensor.is_nested:
        told = (
            "is a nested tensor; a dense one is needed. Pad its rows to one size: "
            "torch.nested.to_padded_tensor(x, 0.0)"
        )
    elif tensor.layout is not torch.strided:
        told = f"has layout {tensor.layout}; a dense tensor is needed. Convert it: x.to_dense()"
    elif tensor.is_quantized:
        told = (
            f"is quantized ({tensor.dtype}); a plain tensor is needed. Give x.dequantize(), or "
            "x.int_repr() to a model that takes whole numbers"
        )
    else:
        told = (
            "is on the meta device, which holds no values. Give one that was made on the CPU or "
            "on another device that computes"
        )
    raise ArgumentError(f"{what} {told}.")
