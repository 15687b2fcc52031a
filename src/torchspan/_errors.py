# SPDX-License-Identifier: MIT
"""Every exception that torchspan raises on purpose.

::

    TorchspanError               code 1
    ├── ArgumentError            code 2   (TypeError, ValueError)
    ├── DeviceError              code 3   (ValueError)
    ├── PlacementError           code 4   (RuntimeError)
    ├── ModelFileError           code 5   (ValueError)
    │   └── ModelFileNotFoundError        (FileNotFoundError)
    ├── ModelError               code 6   (RuntimeError)
    ├── DeviceMemoryError        code 7   (MemoryError)
    ├── RankError                code 8   (RuntimeError)
    ├── BuildError               code 9   (RuntimeError)
    └── CheckpointError          code 10  (ValueError)

A leaf also derives from the builtin that a caller who never heard of torchspan would catch. The
codes are the C library's status codes: one tree, three languages.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "ArgumentError",
    "BuildError",
    "CheckpointError",
    "DeviceError",
    "DeviceMemoryError",
    "ModelError",
    "ModelFileError",
    "ModelFileNotFoundError",
    "PlacementError",
    "RankError",
    "TorchspanError",
]


class TorchspanError(Exception):
    """The root: catch this to catch everything that torchspan raises on purpose."""

    code: ClassVar[int] = 1


class ArgumentError(TorchspanError, TypeError, ValueError):
    """A value handed to a call does not fit: its dtype, shape, number or meaning."""

    code = 2


class DeviceError(TorchspanError, ValueError):
    """A device was asked for that is unknown or not there."""

    code = 3


class PlacementError(TorchspanError, RuntimeError):
    """The launcher's variables contradict each other or are incomplete."""

    code = 4


class ModelFileError(TorchspanError, ValueError):
    """A model file is damaged, of another kind, too new, or has no build that fits."""

    code = 5


class ModelFileNotFoundError(ModelFileError, FileNotFoundError):
    """There is no model file at the path that was given."""


class ModelError(TorchspanError, RuntimeError):
    """The model itself failed while it ran."""

    code = 6


class DeviceMemoryError(TorchspanError, MemoryError):
    """A device or the host ran out of memory."""

    code = 7


class RankError(TorchspanError, RuntimeError):
    """Another rank failed or went away, or the ranks could not find each other."""

    code = 8


class BuildError(TorchspanError, RuntimeError):
    """A compiler, of models or of native code, failed; the message holds its output."""

    code = 9


class CheckpointError(TorchspanError, ValueError):
    """A checkpoint is missing, damaged, or does not fit what it is loaded into."""

    code = 10
