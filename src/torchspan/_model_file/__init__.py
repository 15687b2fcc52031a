# SPDX-License-Identifier: MIT
"""Model files: the archive, its description, save, compile, and the cache of unpacked builds."""

from torchspan._model_file._archive import Archive
from torchspan._model_file._cache import cache_folder
from torchspan._model_file._capability import cpu_level, device_capability, fits, gains
from torchspan._model_file._compare import relative_error
from torchspan._model_file._dense import is_dense, require_dense
from torchspan._model_file._describe import describe
from torchspan._model_file._description import BATCH, Build, Description, TensorSpec
from torchspan._model_file._program import first_line, move_program
from torchspan._model_file._save import compile, save
from torchspan._model_file._stored import read_stored
from torchspan._model_file._target import Target
from torchspan._model_file._torchscript import load_torchscript
from torchspan._model_file._unpacked import compile_here, unpack_build

__all__ = [
    "BATCH",
    "Archive",
    "Build",
    "Description",
    "Target",
    "TensorSpec",
    "cache_folder",
    "compile",
    "compile_here",
    "cpu_level",
    "describe",
    "device_capability",
    "first_line",
    "fits",
    "gains",
    "is_dense",
    "load_torchscript",
    "move_program",
    "read_stored",
    "relative_error",
    "require_dense",
    "save",
    "unpack_build",
]
