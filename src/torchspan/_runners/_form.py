# SPDX-License-Identifier: MIT
"""What every runner is, and how a call's flat outputs become what the model returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from torchspan._errors import ModelError
from torchspan._script import ScriptError, take_apart

__all__ = ["Form", "Runner", "flatten"]


@dataclass(frozen=True)
class Form:
    """How outputs in a row are given back: as they are, in a tuple or in a dict.

    Attributes:
        returns: ``"tensor"``, ``"tuple"`` or ``"dict"``.
        names: The keys of a dict.
    """

    returns: str
    names: tuple[str, ...] = ()

    def build(self, outputs: Sequence[Any]) -> Any:
        """What the model returns, from its outputs in a row."""
        if self.returns == "tensor":
            return outputs[0]
        if self.returns == "dict":
            return dict(zip(self.names, outputs, strict=True))
        return tuple(outputs)


class Runner(Protocol):
    """A model opened on one device; safe to call from several threads."""

    @property
    def form(self) -> Form | None:
        """How its outputs are given back; None before the first call where nothing says it."""

    @property
    def parallel(self) -> bool:
        """Whether calls on the CPU run at the same time, each on the threads of its caller."""

    def __call__(self, inputs: Sequence[Tensor], rows: int | None) -> list[Tensor]:
        """Run one batch.

        Args:
            inputs: Checked tensors on the runner's device.
            rows: The batch; None where there is none.

        Returns:
            The outputs in a row, on the same device.
        """


def flatten(result: object) -> tuple[list[Tensor], Form]:
    """Take what a Python model returned apart.

    Raises:
        ModelError: It is no tensor, nor a tuple, list or dict of tensors.
    """
    try:
        tensors, returns, names = take_apart(result)
    except ScriptError as error:
        raise ModelError(str(error)) from None
    return tensors, Form(returns, names)
