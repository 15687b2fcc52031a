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
from torchspan._model import Model, load
from torchspan._model_file import Build, Description, TensorSpec, compile, describe, save
from torchspan._placement import Placement, find_placement
from torchspan._staging import register, unregister
from torchspan._version import __version__
from torchspan._world import World, join

__all__ = [
    "ArgumentError",
    "Build",
    "BuildError",
    "CheckpointError",
    "Description",
    "Device",
    "DeviceError",
    "DeviceMemoryError",
    "Model",
    "ModelError",
    "ModelFileError",
    "ModelFileNotFoundError",
    "Placement",
    "PlacementError",
    "RankError",
    "TensorSpec",
    "TorchspanError",
    "World",
    "__version__",
    "compile",
    "describe",
    "devices",
    "find_placement",
    "join",
    "load",
    "register",
    "save",
    "unregister",
]
