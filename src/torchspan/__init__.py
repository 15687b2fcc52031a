# SPDX-License-Identifier: MIT
"""Run and train PyTorch models on every device you have, from the code you already have."""

from torchspan._devices import Device
from torchspan._devices import parse_devices as devices
from torchspan._errors import (
    ArgumentError,
    BuildError,
    CheckpointError,
    DeviceError,
    DeviceMemoryError,
    ModelError,
    ModelFileError,
    ModelFileNotFoundError,
    PlacementError,
    RankError,
    TorchspanError,
)
from torchspan._placement import Placement, find_placement
from torchspan._version import __version__

__all__ = [
    "ArgumentError",
    "BuildError",
    "CheckpointError",
    "Device",
    "DeviceError",
    "DeviceMemoryError",
    "ModelError",
    "ModelFileError",
    "ModelFileNotFoundError",
    "Placement",
    "PlacementError",
    "RankError",
    "TorchspanError",
    "__version__",
    "devices",
    "find_placement",
]
