# SPDX-License-Identifier: MIT
"""``torchspan describe``: what a model file says about itself."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchspan._model_file import Build, Description, TensorSpec, describe
from torchspan.cli._parser import add_command
from torchspan.cli._terminal import format_bytes, print_json, print_table

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["BUILD_HEADS", "add_parser", "build_rows", "run"]

KINDS = {"pt2": "PyTorch 2 archive (.pt2)", "jit": "TorchScript", "script": "Python script"}
BUILD_HEADS = ("build", "device", "capability", "precision", "batches", "torch", "off from eager")

_TENSOR_HEADS = ("name", "dtype", "shape", "rows")


def add_parser(subparsers: Subparsers) -> None:
    """Add ``describe`` to the commands."""
    parser = add_command(
        subparsers,
        "describe",
        summary="show a model file's inputs, outputs and builds",
        about="Weights are not loaded, and no code of the file is run.",
        example="torchspan describe net.pt2",
    )
    parser.add_argument("model", metavar="MODEL", help="a .pt2, .pt or .py file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the description."""
    found = describe(arguments.model)
    if arguments.json:
        print_json(found.to_dict())
        return 0
    print_table("", ("what", "answer"), _facts(found))
    _print_tensors("Inputs", found.inputs, found)
    _print_tensors("Outputs", found.outputs, found)
    if found.builds:
        print_table("\nBuilds", BUILD_HEADS, build_rows(found.builds))
    else:
        print("\nBuilds: none")
    return 0


def build_rows(builds: Sequence[Build]) -> list[tuple[str, ...]]:
    """The rows of the table of builds, as ``BUILD_HEADS`` names them."""
    return [
        (
            build.name,
            build.device,
            build.capability,
            build.precision,
            _batches(build),
            build.torch,
            "not compared" if build.error is None else f"{build.error:.1e}",
        )
        for build in builds
    ]


def _facts(found: Description) -> list[tuple[str, str]]:
    versions = [
        f"{name} {version}"
        for name, version in (("torchspan", found.torchspan), ("torch", found.torch))
        if version is not None
    ]
    apart = {None: "unknown", True: "yes", False: "no: rows depend on each other"}
    row = "unknown" if found.row_bytes is None else format_bytes(found.row_bytes)
    return [
        ("file", str(found.path)),
        ("kind", KINDS.get(found.kind, found.kind)),
        ("written by", " with ".join(versions) or "unknown"),
        ("returns", found.returns or "unknown"),
        ("batch may be split", apart[found.rows_independent]),
        ("memory of a row", row),
    ]


def _print_tensors(title: str, specs: Sequence[TensorSpec] | None, found: Description) -> None:
    if specs is None:
        print(f"\n{title}: unknown")
        return
    rows = [
        (each.name, each.dtype or "unknown", _shape(each, found), _rows(each)) for each in specs
    ]
    print_table(f"\n{title}", _TENSOR_HEADS, rows)


def _shape(spec: TensorSpec, found: Description) -> str:
    if spec.shape is None:
        return "unknown"
    return f"({', '.join(_size(size, found) for size in spec.shape)})"


def _size(size: int | str | None, found: Description) -> str:
    if size is None:
        return "?"
    if size not in found.limits:
        return str(size)
    low, high = found.limits[str(size)]
    return f"{size}: {low} up" if high is None else f"{size}: {low} to {high}"


def _rows(spec: TensorSpec) -> str:
    if spec.shape is None:
        return "unknown"
    return "batch" if spec.batched else "shared by all"


def _batches(build: Build) -> str:
    if build.max_batch is None:
        return "any" if build.min_batch == 0 else f"{build.min_batch} up"
    if build.max_batch == build.min_batch:
        return str(build.min_batch)
    return f"{build.min_batch} to {build.max_batch}"
