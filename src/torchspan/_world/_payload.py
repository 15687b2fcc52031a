# SPDX-License-Identifier: MIT
"""What may travel between ranks, and how: tensors as bytes, everything else pickled."""

from __future__ import annotations

import pickle
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["OPS", "describe", "find_problem", "flatten", "pack", "view_bytes"]

OPS = {
    "sum": dist.ReduceOp.SUM,
    "mean": dist.ReduceOp.SUM,  # then divided: only NCCL knows a mean
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
}
_REAL = (
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.uint8, torch.int8, torch.int32, torch.int64),
)
_COMPLEX = (torch.complex64, torch.complex128)


def find_problem(tensor: Any, op: str) -> str | None:
    """What is wrong with reducing ``tensor`` by ``op``, if anything is."""
    if not isinstance(tensor, torch.Tensor):
        return (
            f"all_reduce takes a tensor, not {type(tensor).__name__}; make one with "
            "torch.as_tensor()."
        )
    if op not in OPS:
        return f"op={op!r} is none of {', '.join(map(repr, OPS))}."
    if tensor.layout != torch.strided:
        return f"all_reduce takes no {_word(tensor.layout)} tensors; give it tensor.to_dense()."
    if tensor.dtype not in (*_REAL, *_COMPLEX):
        return f"all_reduce takes no {_word(tensor.dtype)} tensors; convert it, to int32 for one."
    if tensor.dtype in _COMPLEX and op in ("max", "min"):
        return f"op={op!r} has no meaning for {_word(tensor.dtype)}; reduce its abs() instead."
    if op == "mean" and not (tensor.is_floating_point() or tensor.is_complex()):
        return (
            f"op='mean' of {_word(tensor.dtype)} would be cut to whole numbers; convert it to a "
            "floating dtype, or use 'sum'."
        )
    return None


def describe(tensor: Any) -> str:
    """The dtype and shape of a tensor, such as ``"float32 (3, 4)"``."""
    if not isinstance(tensor, torch.Tensor):
        return type(tensor).__name__
    return f"{_word(tensor.dtype)} {tuple(tensor.shape)}"


def _word(name: Any) -> str:
    return str(name).removeprefix("torch.")


def pack(value: Any) -> tuple[dict[str, Any] | None, str | None]:
    """What tells the others of ``value``, or what is wrong with it."""
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        moved = value.device.type != "cpu"
        return {"dtype": value.dtype, "shape": tuple(value.shape), "moved": moved}, None
    try:
        return {"pickle": pickle.dumps(value)}, None
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        return None, f"{type(value).__name__} cannot be sent to another rank: {error}."


def flatten(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its elements in order and at rest in memory, without its gradient."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def view_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor as its bytes, which every backend carries whatever the dtype."""
    return tensor.reshape(-1).view(torch.uint8)
