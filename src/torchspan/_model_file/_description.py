# SPDX-License-Identifier: MIT
"""What a model file says about itself: inputs, outputs, builds.

The JSON form is ``extra/torchspan.json`` in the archive, which the native library reads as well:
``docs/architecture.md`` shows it. A dimension is a number, a name (any size, the same wherever the
name appears) or null where nothing is known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torchspan._errors import ModelFileError

__all__ = ["BATCH", "FORMAT", "Build", "Description", "TensorSpec"]

FORMAT = 1
BATCH = "batch"


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a model.

    Attributes:
        name: What it is called.
        dtype: ``"float32"`` and the like; None where the file does not say.
        shape: A number, a name or None (unknown) a dimension; None where not even ndim is known.
        batched: Whether its first dimension is the batch; the others are shared by all rows.
    """

    name: str
    dtype: str | None = None
    shape: tuple[int | str | None, ...] | None = None
    batched: bool = True

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}: {self.dtype or 'unknown'}"
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name}: {self.dtype} ({sizes})"


@dataclass(frozen=True)
class Build:
    """One compiled form of the model.

    Attributes:
        name: What it is called; unique in its file.
        folder: Where its files lie in the archive.
        device: The kind of device it runs on.
        capability: What the device must be able to do: ``"avx512"``, ``"9.0"``.
        precision: What it computes in: ``"float32"`` is the model's own.
        min_batch: The smallest batch it is meant for.
        max_batch: The largest batch it is meant for; None where there is none.
        torch: The version of torch that compiled it.
        digest: SHA-256 over its files' names and bytes.
        error: How far it was from eager when it was made (relative 2-norm); None if not compared.
    """

    name: str
    folder: str
    device: str
    capability: str
    precision: str
    min_batch: int
    max_batch: int | None
    torch: str
    digest: str
    error: float | None = None

    @property
    def purpose(self) -> tuple[object, ...]:
        """What it was made for; of two builds for the same, one is enough."""
        return self.device, self.capability, self.precision, self.min_batch, self.max_batch

    @property
    def for_any(self) -> bool:
        """Whether it is meant for every batch, the empty one included."""
        return self.min_batch == 0 and self.max_batch is None

    @property
    def breadth(self) -> float:
        """How many sizes of batch it is meant for: of two that take a batch, the narrower wins."""
        return math.inf if self.max_batch is None else self.max_batch - self.min_batch

    def takes(self, rows: int) -> bool:
        """Whether a batch of ``rows`` is within its range."""
        return self.min_batch <= rows and (self.max_batch is None or rows <= self.max_batch)


@dataclass(frozen=True)
class Description:
    """What a model file says, without its weights; None stands for what it does not say.

    Attributes:
        path: The file; None for a module that was never saved.
        kind: ``"pt2"``, ``"jit"`` (TorchScript), ``"script"`` (Python) or ``"module"``.
        inputs: The inputs in the order of the call.
        outputs: The outputs in the order of the result.
        builds: What was compiled, for which device.
        torch: The version of torch that wrote the file.
        torchspan: The version of torchspan that wrote the file; None for others' files.
        format: The version of the description's own format.
        rows_independent: Whether a row of the result depends on the same row of the inputs alone.
        row_bytes: The most memory that a row's intermediate results need at one time.
        returns: ``"tensor"``, ``"tuple"`` or ``"dict"``: what a call gives in Python.
        limits: The smallest and largest size of each named dimension that has limits.
    """

    path: Path | None
    kind: str
    inputs: tuple[TensorSpec, ...] | None = None
    outputs: tuple[TensorSpec, ...] | None = None
    builds: tuple[Build, ...] = ()
    torch: str | None = None
    torchspan: str | None = None
    format: int | None = None
    rows_independent: bool | None = None
    row_bytes: int | None = None
    returns: str | None = None
    limits: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The description as JSON-safe values."""
        values = asdict(self)
        values["path"] = None if self.path is None else str(self.path)
        return values

    def to_json(self) -> str:
        """The text of ``extra/torchspan.json``."""
        values = self.to_dict()
        for name in ("path", "kind"):
            del values[name]
        return json.dumps({"format": values.pop("format"), **values}, indent=1)

    def with_builds(self, builds: Sequence[Build]) -> Description:
        """The same description with other builds."""
        return replace(self, builds=tuple(builds))

    @classmethod
    def from_json(cls, text: str, path: Path) -> Description:
        """Read ``extra/torchspan.json``.

        Raises:
            ModelFileError: The text is no description, or one of a newer format.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            number = int(values["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(path, error) from error
        if number > FORMAT:
            raise ModelFileError(
                f"{path} has format {number}, written by torchspan {values.get('torchspan')}; "
                f"this torchspan reads formats up to {FORMAT}. Install a newer torchspan, or save "
                "the model again with this one."
            )
        try:
            return cls(
                path=path,
                kind="pt2",
                inputs=tuple(_spec(each) for each in values["inputs"]),
                outputs=tuple(_spec(each) for each in values["outputs"]),
                builds=tuple(Build(**each) for each in values["builds"]),
                torch=values["torch"],
                torchspan=values["torchspan"],
                format=number,
                rows_independent=values["rows_independent"],
                row_bytes=values["row_bytes"],
                returns=values["returns"],
                limits={name: (low, high) for name, (low, high) in values["limits"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(path, error) from error


def _spec(values: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(
        values["name"], values["dtype"], tuple(values["shape"]), bool(values["batched"])
    )


def _damaged(path: Path, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"{path} holds a description that makes no sense ({type(error).__name__}: {error}); the "
        "file is damaged. Save the model again."
    )
