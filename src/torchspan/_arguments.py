# SPDX-License-Identifier: MIT
"""Check one call's inputs against a description, and take numpy arrays for tensors.

A build reads memory as it was exported, so a wrong dtype, shape or layout would give garbage
without a word. Every call is checked; only a layout that the model cannot take is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchspan._errors import ArgumentError
from torchspan._model_file import BATCH, Description, TensorSpec, is_dense, require_dense

__all__ = ["Array", "Call", "Checker", "apart", "as_tensor", "check_out", "torch_dtype"]

Array = Tensor | np.ndarray[Any, Any]


class Call(NamedTuple):
    """One call's inputs, ready to be run.

    Attributes:
        tensors: Contiguous tensors of the right dtypes and shapes.
        rows: The batch; None where no input has one.
        numpy: Whether numpy arrays are to be given back.
        sizes: The sizes of the named dimensions.
    """

    tensors: list[Tensor]
    rows: int | None
    numpy: bool
    sizes: dict[str, int]


class Checker:
    """Checks the calls of one model.

    Args:
        description: What the model takes.
        shared: Names or positions of inputs without a batch, for models that do not say.
    """

    def __init__(self, description: Description, shared: frozenset[str | int]) -> None:
        self._limits = dict(description.limits)
        self._shared = shared
        self._known = description.inputs is not None
        # A file's program is known to read its inputs only; of other models nobody knows.
        self._only_reads = description.kind == "pt2"
        self._specs = tuple(_Expected(spec) for spec in description.inputs or ())
        names = [each.spec.name for each in self._specs]
        unknown = [each for each in shared if each not in names and each not in range(len(names))]
        if unknown and self._known:
            raise ArgumentError(
                f"shared has {', '.join(map(repr, unknown))}, but the inputs are "
                f"{', '.join(map(repr, names))}. Name or number them in a tuple: ('grid',)."
            )
        if description.kind == "pt2":
            for index, name in enumerate(names):
                if self._specs[index].spec.batched and (name in shared or index in shared):
                    raise ArgumentError(
                        f"shared has {name!r}, which this file was saved with rows for. A .pt2 "
                        "file says itself what is shared: save it with shared=(...)."
                    )

    def is_batched(self, index: int) -> bool:
        """Whether the input at ``index`` has the batch as its first dimension."""
        if index < len(self._specs):
            expected = self._specs[index]
            if expected.spec.name in self._shared or index in self._shared:
                return False
            return expected.spec.batched
        return index not in self._shared

    def __call__(self, inputs: Sequence[object]) -> Call:
        """Check ``inputs``.

        Raises:
            ArgumentError: One of them has a wrong type, dtype or shape; it is named.
        """
        if self._known and len(inputs) != len(self._specs):
            raise ArgumentError(
                f"{len(inputs)} input{'s were' if len(inputs) != 1 else ' was'} given; this model "
                f"takes {len(self._specs)}: {'; '.join(str(each.spec) for each in self._specs)}."
            )
        numpy = True
        tensors: list[Tensor] = []
        sizes: dict[str, int] = {}
        for index, value in enumerate(inputs):
            if isinstance(value, Tensor):
                numpy = False
                tensor = value
                if not is_dense(tensor):
                    require_dense(tensor, f"input {self._name(index)}")
            else:
                tensor = as_tensor(value, f"input {self._name(index)}", self._only_reads)
            if index < len(self._specs):
                self._specs[index].check(tensor, sizes)
            tensors.append(_plain(tensor))
        for name, (low, high) in self._limits.items():
            size = sizes.get(name, low)
            if size < low or (high is not None and size > high):
                most = "any size" if high is None else str(high)
                raise ArgumentError(
                    f"dimension {name!r} has size {size}; this model takes {low} to {most}."
                )
        rows = sizes.get(BATCH)
        if rows is None:
            rows = self._common_rows(tensors)
        return Call(tensors, rows, numpy and bool(inputs), sizes)

    def _common_rows(self, tensors: Sequence[Tensor]) -> int | None:
        """The batch of a model that says nothing of its shapes."""
        rows: int | None = None
        for index, tensor in enumerate(tensors):
            if not self.is_batched(index) or (self._specs and self._specs[index].says_shape):
                continue
            if tensor.ndim == 0:
                return None
            if rows is not None and tensor.shape[0] != rows:
                raise ArgumentError(
                    f"input {self._name(index)} has {tensor.shape[0]} rows; the inputs before it "
                    f"have {rows}. Name inputs without a batch dimension in load(..., shared=...)."
                )
            rows = tensor.shape[0]
        return rows

    def _name(self, index: int) -> str:
        return repr(self._specs[index].spec.name) if index < len(self._specs) else str(index)


class _Expected:
    """One input's spec, taken apart so that checking a call costs next to nothing."""

    def __init__(self, spec: TensorSpec) -> None:
        self.spec = spec
        self.says_shape = spec.shape is not None
        self._dtype = None if spec.dtype is None else torch_dtype(spec.dtype)
        shape = spec.shape or ()
        self._ndim = len(shape)
        self._fixed = tuple((i, size) for i, size in enumerate(shape) if isinstance(size, int))
        self._named = tuple((i, size) for i, size in enumerate(shape) if isinstance(size, str))

    def check(self, tensor: Tensor, sizes: dict[str, int]) -> None:
        if self._dtype is not None and tensor.dtype is not self._dtype:
            given = str(tensor.dtype).removeprefix("torch.")
            raise ArgumentError(
                f"input {self.spec.name!r} has dtype {given}; this model takes {self.spec.dtype}. "
                f"Convert it, or save the model in {given}."
            )
        if not self.says_shape:
            return
        shape = tensor.shape
        if len(shape) != self._ndim:
            raise self._wrong_shape(tensor)
        for index, size in self._fixed:
            if shape[index] != size:
                raise self._wrong_shape(tensor)
        for index, name in self._named:
            size = shape[index]
            if sizes.setdefault(name, size) != size:
                raise ArgumentError(
                    f"input {self.spec.name!r} has {size} in its dimension {index} ({name}), where "
                    f"another input has {sizes[name]}; they must agree."
                )

    def _wrong_shape(self, tensor: Tensor) -> ArgumentError:
        sizes = ", ".join("any" if each is None else str(each) for each in self.spec.shape or ())
        return ArgumentError(
            f"input {self.spec.name!r} has shape {tuple(tensor.shape)}; this model takes "
            f"({sizes}{',' if self._ndim == 1 else ''}). Reshape it, or save the model with an "
            "example of that shape."
        )


class _Writable:
    """A read-only array's memory shown as writable: torch warns of what nobody here writes to."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        described = dict(array.__array_interface__)
        described["data"] = (described["data"][0], False)
        self.__array_interface__ = described


def as_tensor(value: object, what: str, only_read: bool = True) -> Tensor:
    """A tensor over the memory of a numpy array; copied only where torch cannot describe it.

    Args:
        value: The array.
        what: What to call it in an error.
        only_read: Whether it will not be written to; if it may be, a read-only array is copied.

    Raises:
        ArgumentError: It is no array, has masked values, or a dtype that torch has not.
    """
    if not isinstance(value, np.ndarray | np.generic):
        raise ArgumentError(
            f"{what} is a {type(value).__name__}; give a torch tensor or a numpy array."
        )
    if np.ma.is_masked(value):
        raise ArgumentError(
            f"{what} has masked values, which torch has not. Fill them: x.filled(0.0)."
        )
    array = np.asarray(value)
    if array.dtype.byteorder not in ("=", "|", "<" if sys.byteorder == "little" else ">"):
        raise ArgumentError(
            f"{what} has dtype {array.dtype.str}, of foreign byte order. Convert it with "
            "x.astype(x.dtype.newbyteorder('='))."
        )
    if any(stride < 0 or stride % (array.itemsize or 1) for stride in array.strides):
        array = array.copy()
    try:
        if not array.flags.writeable:
            array = np.asarray(_Writable(array)) if only_read else array.copy()
        return torch.from_numpy(array)
    except TypeError as error:
        raise ArgumentError(f"{what} has dtype {array.dtype}, which torch has not.") from error


def check_out(
    out: object,
    shapes: Sequence[tuple[torch.dtype, Sequence[int]]],
    names: Sequence[str],
) -> list[Tensor]:
    """The tensors to write results into.

    Args:
        out: An array or a tensor, or several in a tuple or list, or in a dict by their names.
        shapes: Dtype and shape of each result.
        names: What the results are called.

    Raises:
        ArgumentError: They do not fit the results, or cannot be written to.
    """
    if isinstance(out, Mapping):
        if set(out) != set(names):
            raise ArgumentError(
                f"out has {', '.join(map(repr, out)) or 'nothing'}; this model gives "
                f"{', '.join(map(repr, names))}."
            )
        out = [out[name] for name in names]
    each = list(out) if isinstance(out, tuple | list) else [out]
    if len(each) != len(shapes):
        raise ArgumentError(
            f"out has {len(each)} array{'s' * (len(each) != 1)}; this model gives {len(shapes)} "
            f"output{'s' * (len(shapes) != 1)}."
        )
    tensors: list[Tensor] = []
    for index, (value, (dtype, shape)) in enumerate(zip(each, shapes, strict=True)):
        what = f"out[{index}]" if len(each) > 1 else "out"
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            raise ArgumentError(f"{what} is read-only; give an array that may be written to.")
        tensor = value if isinstance(value, Tensor) else as_tensor(value, what)
        require_dense(tensor, what)
        if isinstance(value, np.ndarray) and tensor.data_ptr() != value.ctypes.data:
            raise ArgumentError(f"{what} has a layout that torch cannot write to; give another.")
        if tensor.dtype is not dtype or tuple(tensor.shape) != tuple(shape):
            raise ArgumentError(
                f"{what} has dtype {str(tensor.dtype).removeprefix('torch.')} and shape "
                f"{tuple(tensor.shape)}; the result has {str(dtype).removeprefix('torch.')} and "
                f"{tuple(shape)}."
            )
        starts = [other.data_ptr() for other in tensors if other.numel()]
        if tensor.data_ptr() in starts or _folded(tensor):
            raise ArgumentError(
                f"{what} has several results in the same memory; give each a place of its own."
            )
        tensors.append(tensor.detach())
    return tensors


def apart(tensors: Sequence[Tensor], others: Sequence[Tensor]) -> list[Tensor]:
    """``tensors``, copied where they use the memory of ``others``."""
    return [
        each.clone() if any(_overlap(each, other) for other in others) else each for each in tensors
    ]


def torch_dtype(name: str) -> torch.dtype:
    """The dtype called ``name``.

    Raises:
        ArgumentError: torch has no such dtype.
    """
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ArgumentError(f"dtype {name!r} is not known to torch {torch.__version__}.")
    return found


def _overlap(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors use the same stretch of one device's memory."""
    if one.device != other.device or not one.numel() or not other.numel():
        return False
    return one.data_ptr() < _end(other) and other.data_ptr() < _end(one)


def _end(tensor: Tensor) -> int:
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr() + (last + 1) * tensor.itemsize


def _folded(tensor: Tensor) -> bool:
    """Whether several elements are at one place, as in what ``expand`` gives."""
    return any(n > 1 and not step for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _plain(tensor: Tensor) -> Tensor:
    """The same values in memory that can be read as it stands: dense, in order, not lazy."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.is_contiguous() else tensor.contiguous()
