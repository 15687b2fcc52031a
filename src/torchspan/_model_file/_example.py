# SPDX-License-Identifier: MIT
"""Example inputs: named as the model names them, and resized to batches that prove something.

A build compiled for an example batch that equals another size of the model can be silently wrong
at every other batch (torch takes the two for one size), so the example is always tiled to a prime
number of rows that occurs nowhere else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from torchspan._errors import ArgumentError
from torchspan._model_file._dense import require_dense
from torchspan._model_file._description import BATCH

__all__ = ["Example", "ExampleSpec", "alike", "name_example", "pick_rows", "spread", "vary"]

ExampleSpec = Tensor | Sequence[Tensor] | Mapping[str, Tensor]

_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)


@dataclass(frozen=True)
class Example:
    """Inputs to show a model to the compiler with.

    Attributes:
        tensors: By name, in the order of the call.
        keywords: Names that the model takes by keyword only.
        shared: Names of inputs that have no batch dimension.
        dynamic: Further dimensions of any size: input name to dimension to its name.
        batched: Whether inputs that are not shared have the batch as their first dimension.
    """

    tensors: Mapping[str, Tensor]
    keywords: frozenset[str]
    shared: frozenset[str]
    dynamic: Mapping[str, Mapping[int, str]]
    batched: bool

    @property
    def positional(self) -> tuple[Tensor, ...]:
        """The tensors that are handed over by position."""
        return tuple(each for name, each in self.tensors.items() if name not in self.keywords)

    @property
    def by_keyword(self) -> dict[str, Tensor]:
        """The tensors that are handed over by keyword."""
        return {name: each for name, each in self.tensors.items() if name in self.keywords}

    @property
    def rows(self) -> int | None:
        """The batch; None where no input has one."""
        for name, tensor in self.tensors.items():
            if self.has_rows(name):
                return tensor.shape[0]
        return None

    def has_rows(self, name: str) -> bool:
        """Whether the input called ``name`` has the batch as its first dimension."""
        return self.batched and name not in self.shared

    def with_rows(self, rows: int) -> Example:
        """The same inputs, their rows repeated in turn until there are ``rows``."""
        tensors = {
            name: each[torch.arange(rows, device=each.device) % each.shape[0]]
            if self.has_rows(name)
            else each
            for name, each in self.tensors.items()
        }
        return replace(self, tensors=tensors)

    def on(self, device: torch.device) -> Example:
        """The same inputs on another device."""
        return replace(self, tensors={k: v.to(device) for k, v in self.tensors.items()})


def name_example(
    model: nn.Module,
    example: ExampleSpec,
    *,
    batched: bool = True,
    shared: Iterable[str] = (),
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
) -> Example:
    """Give each example input the name of the argument that it is.

    Raises:
        ArgumentError: The inputs are no tensors, do not fit the model's ``forward``, or their
            batches differ.
    """
    given = [example] if isinstance(example, Tensor) else example
    signature = inspect.signature(model.forward)
    try:
        bound = signature.bind(**given) if isinstance(given, Mapping) else signature.bind(*given)
    except TypeError as error:
        raise ArgumentError(
            f"the example does not fit {type(model).__name__}.forward{signature}: {error}. Give a "
            "tensor, a tuple of tensors in the order of the arguments, or a dict by their names."
        ) from error
    tensors, keywords = _bind(signature, bound)
    if not tensors:
        raise ArgumentError("the example is empty; give at least one input tensor.")
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"example input {name!r} is a {type(value).__name__}; give tensors. Options that "
                "are no tensors belong into the model's constructor."
            )
        require_dense(value, f"example input {name!r}")
    found = Example(
        {name: value.detach().resolve_conj().resolve_neg() for name, value in tensors.items()},
        frozenset(keywords),
        frozenset(shared),
        dict(dynamic or {}),
        batched,
    )
    _check(found)
    return found


def pick_rows(example: Example, model: nn.Module) -> int:
    """A prime number of rows that is no other size of the model or its inputs.

    Raises:
        ArgumentError: Every prime tried is some size already.
    """
    sizes = {size for each in example.tensors.values() for size in each.shape[1:]}
    for each in (*model.parameters(), *model.buffers()):
        sizes.update(each.shape)
    for prime in _PRIMES:
        if prime not in sizes:
            return prime
    raise ArgumentError(
        f"every prime up to {_PRIMES[-1]} is a size of this model, so no example batch can be told "
        "from its other sizes. Save it with dynamic_batch=False."
    )


def spread(example: Example, takes: Callable[[Example], bool]) -> Example:
    """The same inputs with whole numbers that differ from row to row, where the model takes them.

    An example of one row, or of zeros, shows nothing of what else may stand there: an index must
    stay within its table. So other numbers are tried, the most varied first.

    Args:
        example: The inputs.
        takes: Tells whether the model runs with such inputs; it must not hurt to ask.
    """
    generator = torch.Generator("cpu").manual_seed(17)
    for name, each in example.tensors.items():
        if each.is_floating_point() or each.is_complex() or not example.has_rows(name):
            continue
        whole = each.to("cpu", torch.int64)
        for low, high in _ranges(whole):
            share = torch.rand(whole.shape, generator=generator, dtype=torch.float64, device="cpu")
            span = high.double() - low.double() + 1
            drawn = (low + (share * span).floor()).to(torch.int64).clamp(low, high)
            tried = replace(example, tensors={**example.tensors, name: drawn.to(each)})
            if _differ(tried.tensors[name]) and takes(tried):
                example = tried
                break
    return example


def vary(example: Example, seed: int) -> Example:
    """The same inputs with their rows shuffled, and floating values changed by about a tenth."""
    generator = torch.Generator("cpu").manual_seed(seed)
    tensors = {}
    for name, each in example.tensors.items():
        value = each
        if example.has_rows(name):
            order = torch.randperm(each.shape[0], generator=generator, device="cpu")
            value = each[order.to(each.device)]
        if value.is_floating_point() or value.is_complex():
            value = _blur(value, generator)
        tensors[name] = value.contiguous()
    return replace(example, tensors=tensors)


def alike(example: Example) -> list[str]:
    """The inputs whose rows are all the same, so that mixing them up would not show."""
    return [
        name
        for name, each in example.tensors.items()
        if example.has_rows(name) and each.numel() and not _differ(each)
    ]


def _differ(rows: Tensor) -> bool:
    # What is no number differs from itself, and shows nothing.
    return bool(((rows != rows[:1]) & (rows == rows)).any())


def _ranges(whole: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Smallest and largest numbers to draw between: for the whole input, for each place in a row.

    The second ones keep to their place, as where a row holds indices into several tables.
    """
    if not whole.numel():
        return
    zero = torch.zeros((), dtype=torch.int64, device="cpu")
    yield whole.min().minimum(zero), whole.max().maximum(zero)
    low, high = whole.amin(0), whole.amax(0)
    yield low, high
    yield low.minimum(zero), high.maximum(zero)
    yield low, high + 1
    yield low - 1, high


def _blur(value: Tensor, generator: torch.Generator) -> Tensor:
    kind = value.dtype if value.dtype.itemsize >= 4 else torch.float32
    noise = torch.randn(value.shape, generator=generator, dtype=kind, device="cpu").to(value)
    # What is not finite stays: noise as large as infinity would make everything so.
    finite = value[value.isfinite()]
    scale = finite.abs().mean() if finite.numel() else 0
    return value + noise * 0.1 * (scale + 0.1)


def _bind(
    signature: inspect.Signature, bound: inspect.BoundArguments
) -> tuple[dict[str, Tensor], list[str]]:
    tensors: dict[str, Tensor] = {}
    keywords: list[str] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            tensors.update({f"{name}_{index}": each for index, each in enumerate(value)})
        elif kind is inspect.Parameter.VAR_KEYWORD:
            raise ArgumentError(
                f"forward takes {', '.join(map(repr, value))} by **{name}, which torch.export does "
                "not export. Name the inputs in the signature of forward."
            )
        else:
            tensors[name] = value
            if kind is inspect.Parameter.KEYWORD_ONLY:
                keywords.append(name)
    return tensors, keywords


def _check(example: Example) -> None:
    names = list(example.tensors)
    for what, given in (("shared", example.shared), ("dynamic", example.dynamic)):
        unknown = [name for name in given if name not in example.tensors]
        if unknown:
            raise ArgumentError(
                f"{what} names {', '.join(map(repr, unknown))}, but the inputs are "
                f"{', '.join(map(repr, names))}."
            )
    for name, sizes in example.dynamic.items():
        _check_named(name, sizes, example)
    rows: dict[str, int] = {}
    for name, tensor in example.tensors.items():
        if not example.has_rows(name):
            continue
        if tensor.ndim == 0 or tensor.shape[0] == 0:
            raise ArgumentError(
                f"example input {name!r} has shape {tuple(tensor.shape)}, which has no rows. Its "
                "first dimension must be the batch; if it has none, add its name to shared=(...)."
            )
        rows[name] = tensor.shape[0]
    if len(set(rows.values())) > 1:
        told = ", ".join(f"{name!r} has {count}" for name, count in rows.items())
        raise ArgumentError(
            f"the example inputs differ in their number of rows: {told}. Inputs without a batch "
            "dimension belong into shared=(...)."
        )


def _check_named(name: str, sizes: object, example: Example) -> None:
    ndim, first = example.tensors[name].ndim, int(example.has_rows(name))
    fits = isinstance(sizes, Mapping) and all(
        isinstance(index, int) and first <= index < ndim and isinstance(given, str)
        for index, given in sizes.items()
    )
    if not fits:
        told = f"dimensions {first} to {ndim - 1}" if first < ndim else "no dimension"
        raise ArgumentError(
            f"dynamic has {sizes!r} for {name!r}, of which {told} can be named"
            f"{' (0 is the batch)' if first else ''}; give numbers and names: {{{first}: 'nx'}}."
        )
    if isinstance(sizes, Mapping) and BATCH in sizes.values():
        raise ArgumentError(
            f"dynamic calls a dimension of {name!r} {BATCH!r}, which is the name of the first one. "
            "Give it another name."
        )
