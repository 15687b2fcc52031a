# SPDX-License-Identifier: MIT
"""Save a module as a model file, and add builds to a file that is there.

Nothing is written before every build gave what eager gives; the file then appears whole, under its
own name, by a rename.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from torchspan._devices import Device, DeviceSpec, parse_devices
from torchspan._errors import ArgumentError
from torchspan._log import log
from torchspan._model_file._archive import Archive, BuildFiles, add_builds, write_archive
from torchspan._model_file._compare import rows_independent
from torchspan._model_file._compile import build_checked
from torchspan._model_file._describe import describe
from torchspan._model_file._description import FORMAT, Description
from torchspan._model_file._example import Example, ExampleSpec, name_example, pick_rows
from torchspan._model_file._program import (
    describe_program,
    evaluating,
    export_program,
    find_limits,
    measure_row_bytes,
    move_program,
)
from torchspan._model_file._stored import read_stored
from torchspan._model_file._target import Target
from torchspan._model_file._torchscript import save_torchscript
from torchspan._model_file._tune import tuned_builds
from torchspan._version import __version__

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["compile", "save"]

Progress = Callable[[str], None]


def save(
    model: nn.Module,
    path: str | Path,
    example: ExampleSpec,
    *,
    devices: DeviceSpec = "cpu",
    dynamic_batch: bool = True,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    static_batches: Sequence[int] = (),
    tuned: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    shared: Iterable[str] = (),
    cpu: str | None = None,
    format: str | None = None,
    check: bool = True,
    progress: Progress | None = None,
) -> Description:
    """Save ``model`` as a model file that runs on many devices, without Python if need be.

    The model is saved as it evaluates (dropout off); its own modes are left as they were.

    Args:
        model: The module; its parameters are stored with it.
        path: The file to write: ``.pt2``, or ``.pt`` for TorchScript.
        example: The inputs of one call: a tensor, a tuple in the order of the arguments, or a dict
            by their names. Any batch size will do.
        devices: What to compile for: ``"cpu"``, ``("cpu", "cuda")``. One build a kind is made.
        dynamic_batch: Whether the first dimension of the inputs is a batch of any size. If not,
            the file takes exactly the example's shapes.
        dynamic: Further dimensions of any size, by input and number: ``{"x": {2: "nx"}}``.
        static_batches: Batch sizes to make a build of their own for, which is quicker there.
        tuned: Whether to try builds for few rows and for many beside the one for any batch, on the
            CPU. Each is kept where it is measured to be quicker, for the batches at which it is.
            It takes two to three times as long; files are larger by the weights of each.
        input_names: Names for the inputs; those of the arguments of ``forward`` by default.
        output_names: Names for the outputs; the keys of a returned dict by default.
        shared: Names of inputs that have no batch dimension, such as a grid.
        cpu: The CPU level to build for, where it is not this machine's: ``"avx512"``, ``"avx2"``,
            ``"neon"``, ``"baseline"``.
        format: ``"pt2"`` or ``"pt"``; the path's ending by default.
        check: Whether each build is compared with eager at several batch sizes. Leave it on.
        progress: Called with a line of text at the start of each step.

    Returns:
        What the file says about itself.

    Raises:
        ArgumentError: The example does not fit the model, or an option makes no sense.
        BuildError: torch cannot export or compile the model, or a build gave wrong results.
        DeviceError: A device to build for is not there.
        ModelFileError: The file cannot be written.
    """
    target = Path(path)
    places = parse_devices(devices)
    if not isinstance(model, nn.Module):
        raise ArgumentError(
            f"model is a {type(model).__name__}; a torch.nn.Module is needed (torch.nn.Sequential "
            "or a class with forward)."
        )
    say = progress or log.info
    if _choose_format(target, format) == "pt":
        _refuse_for_torchscript(static_batches, dynamic, input_names, output_names, shared, cpu)
        save_torchscript(model, target, example, places[0])
        return describe(target)
    _check_static(static_batches, dynamic_batch)
    shown = name_example(model, example, batched=dynamic_batch, shared=shared, dynamic=dynamic)
    say(f"exporting {type(model).__name__}")
    program, shown = _export(model, shown)
    description = _describe(target, program, shown, input_names, output_names)
    independent = rows_independent(program, shown, check)
    description = replace(description, rows_independent=independent)
    targets = _targets(places, cpu, static_batches, "float32")
    builds = _build_all(program, shown, targets, tuned, check, say)
    for index, each in enumerate(builds):
        if each.build.device == "cpu" and each.build.for_any:
            # The one that plain PyTorch finds.
            builds[index] = each.called("model")
            break
    say(f"writing {target}")
    write_archive(target, program, description, builds)
    return describe(target)


def compile(
    path: str | Path,
    device: DeviceSpec = "cpu",
    *,
    cpu: str | None = None,
    static_batches: Sequence[int] = (),
    tuned: bool = True,
    precision: str = "float32",
    check: bool = True,
    progress: Progress | None = None,
) -> Description:
    """Add builds to a ``.pt2`` file: for another kind of device, CPU level, batch or precision.

    A build of the same name is replaced. Files saved by plain PyTorch are not changed; save the
    model with ``torchspan.save`` instead.

    Args:
        path: The file.
        device: What to build for; it must be there.
        cpu: The CPU level to build for, where it is not this machine's.
        static_batches: Batch sizes to make a build of their own for, beside the one for any batch.
        tuned: Whether to try builds for few rows and for many, as :func:`save` does.
        precision: ``"float32"`` for the model's own, ``"bfloat16"`` or ``"tf32"``.
        check: Whether each build is compared with eager. Leave it on.
        progress: Called with a line of text at the start of each step.

    Returns:
        What the file now says about itself.

    Raises:
        ArgumentError: The file is no ``.pt2``, or an option makes no sense.
        BuildError: torch cannot compile the model, or a build gave wrong results.
        DeviceError: The device is not there.
        ModelFileError: The file cannot be read or written, or was saved anew in the meantime.
    """
    target = Path(path)
    found = describe(target)
    if found.kind != "pt2" or found.torchspan is None:
        raise ArgumentError(
            f"{target} was not saved as .pt2 by torchspan, so no build can be added to it. Save "
            "the model with torchspan.save or 'torchspan export'."
        )
    with Archive(target) as archive:
        sums = archive.program_sums()
    say = progress or log.info
    _check_static(static_batches, any(each.batched for each in found.inputs or ()))
    program, _, shown = read_stored(target, found)
    targets = _targets(parse_devices(device), cpu, static_batches, precision)
    builds = _build_all(program, shown, targets, tuned, check, say)
    say(f"writing {target}")
    add_builds(target, sums, builds)
    return describe(target)


def _build_all(
    program: ExportedProgram,
    shown: Example,
    targets: Sequence[Target],
    tuned: bool,
    check: bool,
    say: Progress,
) -> list[BuildFiles]:
    builds: list[BuildFiles] = []
    for target in targets:
        plain = build_checked(program, shown, target, check, say)
        builds.append(plain)
        if tuned and shown.rows and plain.build.for_any and target.tunable:
            builds += tuned_builds(program, shown, target, plain, check, say)
    return builds


def _export(model: nn.Module, shown: Example) -> tuple[ExportedProgram, Example]:
    if shown.rows is not None:
        shown = shown.with_rows(pick_rows(shown, model))
    with evaluating(model):
        program = export_program(model, shown)
    # The file is read on machines of all kinds, so it holds the CPU's form.
    cpu = torch.device("cpu")
    return move_program(program, cpu), shown.on(cpu)


def _describe(
    path: Path,
    program: ExportedProgram,
    shown: Example,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> Description:
    inputs, outputs, returns = describe_program(program, shown, input_names, output_names)
    return Description(
        path=path,
        kind="pt2",
        inputs=inputs,
        outputs=outputs,
        torch=torch.__version__.split("+")[0],
        torchspan=__version__,
        format=FORMAT,
        row_bytes=measure_row_bytes(program),
        returns=returns,
        limits=find_limits(program, shown),
    )


def _check_static(static_batches: Sequence[int], dynamic_batch: bool) -> None:
    given: object = static_batches
    sizes = given if isinstance(given, Sequence) and not isinstance(given, str) else None
    if sizes is None or any(not isinstance(rows, int) or rows < 1 for rows in sizes):
        raise ArgumentError(f"static_batches has {given!r}; give whole sizes of at least 1: (1,).")
    if sizes and not dynamic_batch:
        raise ArgumentError(
            f"static_batches has {given!r}, but the model is of one batch size (dynamic_batch=False"
            " or no input with a batch). Leave static_batches out, or dynamic_batch on."
        )


def _refuse_for_torchscript(*options: object) -> None:
    names = ("static_batches", "dynamic", "input_names", "output_names", "shared", "cpu")
    given = [name for name, value in zip(names, options, strict=True) if value]
    if given:
        raise ArgumentError(
            f"{', '.join(given)} cannot be stored in a TorchScript file; save as .pt2, or leave "
            f"{'them' if len(given) > 1 else 'it'} out."
        )


def _choose_format(path: Path, format: str | None) -> str:
    chosen = format or path.suffix.lstrip(".")
    if chosen not in ("pt2", "pt"):
        raise ArgumentError(
            f"format {chosen!r} is not known; end the path in .pt2 (the default) or .pt "
            "(TorchScript), or give format='pt2' or format='pt'."
        )
    return chosen


def _targets(
    places: Sequence[Device], cpu: str | None, static_batches: Sequence[int], precision: str
) -> list[Target]:
    if precision not in ("float32", "bfloat16", "tf32"):
        raise ArgumentError(
            f"precision {precision!r} is not known; give 'float32', 'bfloat16' or 'tf32'."
        )
    targets: dict[str, Target] = {}
    for place in places:
        for rows in (None, *static_batches):
            each = Target(place, cpu if place.torch.type == "cpu" else None, precision, rows)
            targets.setdefault(each.name, each)
    return list(targets.values())
