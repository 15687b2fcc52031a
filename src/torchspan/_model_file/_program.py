# SPDX-License-Identifier: MIT
"""A module as an exported program, and what the program tells about inputs, outputs and rows."""

from __future__ import annotations

import copy
import inspect
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from torchspan._errors import ArgumentError, BuildError
from torchspan._model_file._archive import quiet_torch
from torchspan._model_file._description import BATCH, TensorSpec
from torchspan._model_file._example import Example

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = [
    "count_weights",
    "describe_outputs",
    "describe_program",
    "describe_tensor",
    "evaluating",
    "export_program",
    "find_limits",
    "first_line",
    "fixed_rows",
    "input_values",
    "measure_row_bytes",
    "move_program",
    "multiplies_by",
    "run_flat",
]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put ``model`` into evaluation mode, and each of its parts back into its own mode after it."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def export_program(model: nn.Module, example: Example) -> ExportedProgram:
    """Export ``model`` as it is called with ``example``.

    Raises:
        BuildError: torch cannot export it; the message holds torch's reason and the cure.
        ArgumentError: The model changes its own buffers when it is called.
    """
    shapes = _dynamic_shapes(model, example)
    try:
        with torch.no_grad(), quiet_torch():
            program = torch.export.export(
                model, example.positional, example.by_keyword, dynamic_shapes=shapes
            )
    except Exception as error:
        cure = (
            "If the model takes one batch size only, save it with dynamic_batch=False."
            if example.batched
            else "Mend the model, or save it as TorchScript (format='pt')."
        )
        raise BuildError(
            f"torch.export cannot export {type(model).__name__}: {_reason(error)} {cure}"
        ) from error
    _require_pure(program, type(model).__name__)
    return program


def move_program(program: ExportedProgram, device: torch.device) -> ExportedProgram:
    """A copy of the program on ``device``, or the program itself where it is there already."""
    tensors = [*program.state_dict.values(), *program.constants.values()]
    if all(each.device == device for each in tensors if isinstance(each, Tensor)):
        return program
    from torch.export.passes import move_to_device_pass

    with quiet_torch():
        # torch's pass changes the program that it is given.
        return move_to_device_pass(copy.deepcopy(program), str(device))


def describe_program(
    program: ExportedProgram,
    example: Example,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...], str]:
    """Inputs, outputs and what a call returns, as the description says them.

    Raises:
        ArgumentError: An output is no tensor, or names are too few, too many or not unique.
    """
    symbols = _symbols(program, example)
    names = _checked_names("input", input_names, list(example.tensors))
    inputs = tuple(
        describe_tensor(name, value, symbols, example.has_rows(own))
        for name, own, value in zip(names, example.tensors, input_values(program), strict=True)
    )
    outputs, returns = describe_outputs(program, symbols, output_names)
    return inputs, outputs, returns


def describe_outputs(
    program: ExportedProgram, symbols: Mapping[str, str], output_names: Sequence[str] | None
) -> tuple[tuple[TensorSpec, ...], str]:
    """Outputs and what a call returns; ``symbols`` names the program's own symbols.

    Raises:
        ArgumentError: An output is no tensor, or names are too few, too many or not unique.
    """
    values, returns, keys = _outputs(program)
    names = _checked_names("output", output_names, keys)
    return tuple(
        describe_tensor(name, value, symbols) for name, value in zip(names, values, strict=True)
    ), returns


def describe_tensor(
    name: str, value: Any, symbols: Mapping[str, str], batched: bool | None = None
) -> TensorSpec:
    """The spec of one of a program's own tensors; batched where its first size is the batch."""
    shape = tuple(
        int(size) if str(size).isdigit() else symbols.get(str(size)) for size in value.shape
    )
    if batched is None:
        batched = bool(shape) and shape[0] == BATCH
    return TensorSpec(name, str(value.dtype).removeprefix("torch."), shape, batched)


def input_values(program: ExportedProgram) -> list[Any]:
    """The program's own tensors for its inputs, with symbols for sizes that may vary."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [nodes[str(name)].meta["val"] for name in program.graph_signature.user_inputs]


def run_flat(program: ExportedProgram, example: Example) -> list[Tensor]:
    """Run the program eagerly and give its outputs in a row: the plain way to compare with."""
    with torch.no_grad(), quiet_torch():
        result = program.module()(*example.positional, **example.by_keyword)
    return list(torch.utils._pytree.tree_leaves(result))


def measure_row_bytes(program: ExportedProgram) -> int:
    """The most memory that one row's results hold at one time, from the graph alone."""
    nodes = list(program.graph.nodes)
    last = {user: index for index, node in enumerate(nodes) for user in node.all_input_nodes}
    live = most = 0
    ends: dict[int, int] = {}
    for index, node in enumerate(nodes):
        size = 0 if node.op == "output" else _row_bytes(node.meta.get("val"))
        live += size
        most = max(most, live)
        ends[last.get(node, index)] = ends.get(last.get(node, index), 0) + size
        live -= ends.pop(index, 0)
    return most


def count_weights(program: ExportedProgram) -> int:
    """How many numbers the model's parameters and buffers are."""
    return sum(value.numel() for value in program.state_dict.values())


def multiplies_by(program: ExportedProgram) -> frozenset[str]:
    """The kinds of products with weights in the graph: of ``"matrix"``, ``"convolution"``."""
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    kinds = {
        "matrix": ("aten.linear", "aten.addmm", "aten.mm", "aten.matmul", "aten.baddbmm"),
        "convolution": ("aten.conv",),
    }
    return frozenset(
        kind for kind, starts in kinds.items() if any(name.startswith(starts) for name in names)
    )


def first_line(error: BaseException) -> str:
    """The first line of an error's text that says anything, or its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _require_pure(program: ExportedProgram, name: str) -> None:
    """Refuse a model that changes its own buffers, or its inputs, when it is called."""
    schemas = [getattr(node.target, "_schema", None) for node in program.graph.nodes]
    if not any(schema is not None and schema.is_mutable for schema in schemas):
        return
    # In-place operations on intermediate results are fine; decomposing tells them apart.
    with quiet_torch():
        signature = program.run_decompositions({}).graph_signature
    buffers = sorted(signature.buffers_to_mutate.values())
    inputs = sorted(signature.user_inputs_to_mutate.values())
    if buffers:
        raise ArgumentError(
            f"{name} changes its buffers {', '.join(buffers)} when it is called, so replicas on "
            "several devices would drift apart. Take them as inputs and outputs."
        )
    if inputs:
        raise ArgumentError(
            f"{name} changes its inputs {', '.join(inputs)} in place; a model file's inputs are "
            "the caller's and are only read. Clone them in forward first."
        )


def _reason(error: Exception) -> str:
    # torch's constraint errors say what is wrong in their second line or later.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("- ") or "Not all values" in line]
    return " ".join([first_line(error), *telling[:2]])


def _dynamic_shapes(model: nn.Module, example: Example) -> dict[str, Any] | None:
    from torch.export import Dim

    # The batch must be any size at all; other dimensions may have limits, which torch finds.
    batch = Dim(BATCH, min=0)
    shapes: dict[str, dict[int, Any]] = {}
    for name in example.tensors:
        shapes[name] = dict.fromkeys(example.dynamic.get(name, {}), Dim.DYNAMIC)
        if example.has_rows(name):
            shapes[name][0] = batch
    if not any(shapes.values()):
        return None
    # torch wants them by argument, with all of *args in one tuple.
    positional = [each for name, each in shapes.items() if name not in example.keywords]
    arguments = inspect.signature(model.forward).bind_partial(*positional).arguments
    return {**arguments, **{name: shapes[name] for name in shapes if name in example.keywords}}


def find_limits(program: ExportedProgram, example: Example) -> dict[str, tuple[int, int | None]]:
    """The smallest and largest size of each named dimension that has limits."""
    spans = {str(symbol): span for symbol, span in program.range_constraints.items()}
    limits: dict[str, tuple[int, int | None]] = {}
    for symbol, name in _symbols(program, example).items():
        span = spans.get(symbol)
        if span is None:
            continue
        # A lower bound of 2 is only torch's way of not looking at 0 and 1.
        lower = int(span.lower) if span.lower > 2 else 0
        upper = int(span.upper) if str(span.upper).isdigit() else None
        if lower or upper is not None:
            limits[name] = (lower, upper)
    return limits


def _symbols(program: ExportedProgram, example: Example) -> dict[str, str]:
    """The program's own symbols by the names that the example gives to dimensions."""
    symbols: dict[str, str] = {}
    for name, value in zip(example.tensors, input_values(program), strict=True):
        named = dict(example.dynamic.get(name, {}))
        if example.has_rows(name):
            named[0] = BATCH
        symbols.update({str(value.shape[each]): given for each, given in named.items()})
    return symbols


def _outputs(program: ExportedProgram) -> tuple[list[Any], str, list[str]]:
    from torch.export.graph_signature import ConstantArgument, OutputKind

    found: list[Any] = []
    last = next(node for node in reversed(program.graph.nodes) if node.op == "output")
    for spec, node in zip(program.graph_signature.output_specs, last.args[0], strict=True):
        if spec.kind is not OutputKind.USER_OUTPUT:
            continue
        if isinstance(spec.arg, ConstantArgument) or not isinstance(node.meta.get("val"), Tensor):
            raise ArgumentError(
                f"output {len(found)} of the model is {spec.arg}, no tensor. A model file's "
                "outputs are tensors; wrap the model so that it returns only those."
            )
        found.append(node.meta["val"])
    tree = program.call_spec.out_spec
    if tree is None or tree.num_nodes == 1:
        return found, "tensor", ["output"]
    if tree.num_nodes != tree.num_leaves + 1:
        raise ArgumentError(
            "the model returns tensors inside tuples or dicts inside others; a model file's "
            "outputs are one tensor, a tuple or a dict of tensors. Wrap the model to flatten them."
        )
    if tree.type in (dict, OrderedDict):
        return found, "dict", [str(key) for key in tree.context]
    return found, "tuple", [f"output_{index}" for index in range(len(found))]


def _checked_names(what: str, given: Sequence[str] | None, own: list[str]) -> list[str]:
    if given is None:
        return own
    names = [given] if isinstance(given, str) else list(given)
    if len(names) != len(own) or len(set(names)) != len(names):
        raise ArgumentError(
            f"{what}_names has {names}; this model has {len(own)} {what}{'s' * (len(own) != 1)} "
            f"({', '.join(own)}), each of which needs one name of its own."
        )
    return names


def _row_bytes(value: Any) -> int:
    total = 0
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if not isinstance(each, Tensor) or each.ndim == 0 or str(each.shape[0]).isdigit():
            continue
        size: int = each.dtype.itemsize
        for length in each.shape[1:]:
            size *= int(length) if str(length).isdigit() else _hint(length)
        total += size
    return total


def _hint(length: Any) -> int:
    return int(length.node.hint or 1)


def fixed_rows(example: Example) -> Example:
    """The same inputs with the batch no longer any size but the one that they have."""
    return replace(example, batched=False)
