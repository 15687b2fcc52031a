# SPDX-License-Identifier: MIT
"""Model files: the archive, its description, save, compile, and the cache of unpacked builds."""

from torchspan._model_file._archive import Archive, read_program
from torchspan._model_file._cache import cache_folder, keep_entry
from torchspan._model_file._capability import cpu_level, device_capability, fits
from torchspan._model_file._compile import (
    Target,
    compare_builds,
    compile_build,
    relative_error,
)
from torchspan._model_file._describe import FORWARD_NAMES, describe
from torchspan._model_file._description import BATCH, Build, Description, TensorSpec
from torchspan._model_file._example import Example, vary
from torchspan._model_file._save import compile, program_example, save

__all__ = [
    "BATCH",
    "FORWARD_NAMES",
    "Archive",
    "Build",
    "Description",
    "Example",
    "Target",
    "TensorSpec",
    "cache_folder",
    "compare_builds",
    "compile",
    "compile_build",
    "cpu_level",
    "describe",
    "device_capability",
    "fits",
    "keep_entry",
    "program_example",
    "read_program",
    "relative_error",
    "save",
    "vary",
]
