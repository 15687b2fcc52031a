# SPDX-License-Identifier: MIT
"""Models run by Python: plain modules, TorchScript, and functions of a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from torchspan import _accelerator
from torchspan._devices import Device
from torchspan._log import notice
from torchspan._model_file import gains, relative_error
from torchspan._runners._form import Form, flatten

__all__ = ["EagerRunner"]

MEASURED_ROWS = 64


class EagerRunner:
    """A Python callable on one device.

    Args:
        call: Takes tensors on the device, gives tensors there.
        device: Where it computes.
        precision: ``"float32"`` for the model's own arithmetic, ``"bfloat16"`` or ``"tf32"``.
    """

    def __init__(self, call: Callable[..., Any], device: Device, precision: str) -> None:
        self._call = call
        self._kind = device.torch.type
        self._device = device
        self._precision = precision if gains(device, precision) else "float32"
        self._measured = self._precision == "float32"
        self.form: Form | None = None
        # Python's own lock is held between the operations.
        self.parallel = False

    def __call__(self, inputs: Sequence[Tensor], rows: int | None) -> list[Tensor]:
        """Run one batch."""
        if not self._measured and rows:
            self._measure(inputs, rows)
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if self._precision == "bfloat16":
                stack.enter_context(torch.autocast(self._kind, dtype=torch.bfloat16))
            elif self._precision == "tf32":
                stack.enter_context(_accelerator.tf32(self._kind))
            # Detached: a model may ask for gradients of its inputs, which are the caller's, inside.
            tensors, self.form = flatten(self._call(*(each.detach() for each in inputs)))
        tensors = [each.detach() for each in tensors]
        if self._precision == "bfloat16":
            tensors = [each.float() if each.dtype == torch.bfloat16 else each for each in tensors]
        return tensors

    def _measure(self, inputs: Sequence[Tensor], rows: int) -> None:
        """Say once what lower precision costs, on the first rows of the first call."""
        self._measured = True
        few = [
            each[:MEASURED_ROWS] if each.ndim and each.shape[0] == rows else each for each in inputs
        ]
        lower = self(few, None)
        with torch.no_grad():
            plain, _ = flatten(self._call(*few))
        error = max(relative_error(*pair) for pair in zip(lower, plain, strict=True))
        notice(
            f"{self._precision} on {self._device}: expect a relative error of about {error:.0e} "
            f"(2-norm, measured on {min(rows, MEASURED_ROWS)} rows)."
        )
