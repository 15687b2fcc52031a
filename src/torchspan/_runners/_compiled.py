# SPDX-License-Identifier: MIT
"""Models run by their AOTInductor builds, the one that fits the batch chosen at each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from torchspan import _accelerator
from torchspan._aoti import Opened, open_build
from torchspan._devices import Device
from torchspan._log import log, notice
from torchspan._model_file import (
    Archive,
    Build,
    Description,
    Target,
    compile_here,
    device_capability,
    fits,
    unpack_build,
)
from torchspan._runners._form import Form

__all__ = ["BuildShelf", "CompiledRunner"]


class CompiledRunner:
    """The builds of one file on one device.

    Args:
        builds: What was opened, in the order in which to try them.
        form: How the outputs are given back.
        precision: What the builds compute in.
    """

    def __init__(self, builds: Sequence[tuple[Build, Opened]], form: Form, precision: str) -> None:
        self.form: Form | None = form
        # A build for any batch answers for all that come after it.
        last = next(i for i, (build, _) in enumerate(builds) if build.for_any)
        self._default = builds[last][1]
        self.parallel = bool(getattr(self._default, "parallel", False))
        self._special = tuple(builds[:last])
        self._tf32 = builds[0][0].device if precision == "tf32" else None

    def __call__(self, inputs: Sequence[Tensor], rows: int | None) -> list[Tensor]:
        """Run one batch with the build made for its size."""
        run = self._default
        for build, opened in self._special:
            if rows is not None and build.takes(rows):
                run = opened
                break
        if self._tf32 is None:
            with torch.no_grad():
                return run(inputs)
        with torch.no_grad(), _accelerator.tf32(self._tf32):
            return run(inputs)


class BuildShelf:
    """The builds of one file, each opened once for all devices that can share it.

    Args:
        path: The file.
        description: What the file says of itself.
        calls: How many calls may run at the same time on one device's processor.
    """

    def __init__(self, path: Path, description: Description, calls: int) -> None:
        self._path = path
        self._description = description
        self._calls = calls
        self._opened: dict[tuple[str, str], Opened] = {}

    def open(self, device: Device, precision: str, form: Form) -> CompiledRunner:
        """The runner of ``device``: from the file's builds, or else compiled here.

        Raises:
            BuildError: A build must be compiled here, and the compiler failed or is missing.
            ModelFileError: The file is damaged, or has builds for other capabilities only.
        """
        wanted = [
            build
            for build in self._description.builds
            if build.device == device.torch.type and build.precision == precision
        ]
        builds = _choose([build for build in wanted if fits(build.capability, device)])
        if any(build.for_any for build in builds):
            return CompiledRunner(self._open_all(builds, device), form, precision)
        if wanted and not builds:
            notice(_unfit(self._path, wanted, device))
        target = Target(device, precision=precision)
        folder, build = compile_here(self._path, self._description, target)
        both = [*self._open_all(builds, device), (build, self._open(folder, build, device))]
        return CompiledRunner(both, form, precision)

    def _open_all(self, builds: Sequence[Build], device: Device) -> list[tuple[Build, Opened]]:
        with Archive(self._path) as archive:
            return [
                (build, self._open(unpack_build(archive, build), build, device)) for build in builds
            ]

    def _open(self, folder: Path, build: Build, device: Device) -> Opened:
        key = (build.digest, device.backing)
        if key not in self._opened:
            if build.torch.split(".")[:2] != torch.__version__.split(".")[:2]:
                log.info(
                    "build %s is of torch %s, not %s", build.name, build.torch, torch.__version__
                )
            self._opened[key] = open_build(folder, device, self._calls)
            log.info("%s runs build %s (%s)", device, build.name, build.capability)
            if build.precision != "float32" and build.error is not None:
                notice(
                    f"{build.precision} on {device}: expect a relative error of about "
                    f"{build.error:.0e} (2-norm, measured when the build was made)."
                )
        return self._opened[key]


def _choose(builds: Sequence[Build]) -> list[Build]:
    """One build for each range of batches, of the best capability; the narrower range first.

    The others stay packed: each would take the weights' memory once more.
    """
    ranked: Mapping[str, int] = {"avx512": 0, "avx2": 1, "neon": 1}
    chosen: dict[tuple[int, int | None], Build] = {}
    for build in sorted(builds, key=lambda each: ranked.get(each.capability, 2)):
        chosen.setdefault((build.min_batch, build.max_batch), build)
    return sorted(chosen.values(), key=lambda each: (each.for_any, each.breadth))


def _unfit(path: Path, wanted: Sequence[Build], device: Device) -> str:
    have = ", ".join(sorted({build.capability for build in wanted}))
    return (
        f"{path} holds builds for {device.torch.type} with {have}, which {device} "
        f"({device_capability(device)}) cannot run."
    )
