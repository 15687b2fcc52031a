# SPDX-License-Identifier: MIT
"""Open a model of any kind on devices: a runner for each of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import nn

from torchspan._devices import Device, usable_cores
from torchspan._errors import ArgumentError
from torchspan._log import notice, timed
from torchspan._model_file import Description, gains, load_torchscript, move_program, read_stored
from torchspan._runners._compiled import BuildShelf
from torchspan._runners._eager import EagerRunner
from torchspan._runners._form import Form, Runner
from torchspan._runners._script import open_script

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["Options", "open_runners"]

PRECISIONS = ("float32", "bfloat16", "tf32")


@dataclass(frozen=True)
class Options:
    """How to open a model.

    Attributes:
        precision: ``"float32"`` for the model's own arithmetic, ``"bfloat16"`` or ``"tf32"``.
        compile: Whether a ``.pt2`` runs by its builds; if not, its program is run eagerly.
    """

    precision: str = "float32"
    compile: bool = True

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            known = ", ".join(map(repr, PRECISIONS))
            raise ArgumentError(f"precision {self.precision!r} is not known; give {known}.")


def open_runners(
    source: nn.Module | None, description: Description, devices: Sequence[Device], options: Options
) -> tuple[list[Runner], Description]:
    """Open a model on each device.

    Args:
        source: The module, for a model that is no file.
        description: What the model says of itself.
        devices: Where to open it; the same device may stand there twice.
        options: How to open it.

    Returns:
        A runner a device, and the description with what opening the file told besides.

    Raises:
        ArgumentError: The precision makes no sense for the model.
        BuildError: A build must be compiled here, and the compiler failed or is missing.
        ModelFileError: The file cannot be opened.
    """
    _check_precision(description, devices, options)
    path = description.path
    if source is not None:
        return [_open_module(source, device, options) for device in devices], description
    assert path is not None
    with timed("opened %s on %s", path, ", ".join(map(str, devices))):
        if description.kind == "script":
            return [
                EagerRunner(open_script(path, device), device, options.precision)
                for device in devices
            ], description
        if description.kind == "jit":
            return [_open_torchscript(description, each, options) for each in devices], description
        return _open_pt2(description, devices, options)


def _open_pt2(
    description: Description, devices: Sequence[Device], options: Options
) -> tuple[list[Runner], Description]:
    path = description.path
    assert path is not None
    if description.inputs is None or not options.compile:
        program, description, _ = read_stored(path, description)
    if not options.compile:
        return _open_program(program, devices, options), description
    names = tuple(spec.name for spec in description.outputs or ())
    form = Form(description.returns or "tuple", names)
    shelf = BuildShelf(path, description, max(len(devices), usable_cores()))
    return [
        shelf.open(each, options.precision if gains(each, options.precision) else "float32", form)
        for each in devices
    ], description


def _open_program(
    program: ExportedProgram, devices: Sequence[Device], options: Options
) -> list[Runner]:
    modules: dict[str, nn.Module] = {}
    for device in devices:
        if device.backing not in modules:
            modules[device.backing] = move_program(program, device.torch).module()
    return [EagerRunner(modules[each.backing], each, options.precision) for each in devices]


def _open_module(module: nn.Module, device: Device, options: Options) -> EagerRunner:
    # A copy, so that neither the caller's mode nor its later training shows here, or this there.
    replica = copy.deepcopy(module).to(device.torch).eval()
    return EagerRunner(replica, device, options.precision)


def _open_torchscript(description: Description, device: Device, options: Options) -> EagerRunner:
    assert description.path is not None
    module = load_torchscript(description.path, device.torch)
    module.eval()
    return EagerRunner(module, device, options.precision)


def _check_precision(description: Description, devices: Sequence[Device], options: Options) -> None:
    if options.precision == "float32":
        return
    dtypes = {spec.dtype for spec in description.inputs or () if spec.dtype is not None}
    if dtypes and "float32" not in dtypes:
        raise ArgumentError(
            f"precision={options.precision!r} is for models that take float32; this one takes "
            f"{', '.join(sorted(dtypes))}. Leave precision out."
        )
    without = sorted({str(each) for each in devices if not gains(each, options.precision)})
    if without:
        notice(
            f"{', '.join(without)} gain{'s' * (len(without) == 1)} nothing from "
            f"{options.precision}, and compute{'s' * (len(without) == 1)} in the model's own "
            "precision."
        )
