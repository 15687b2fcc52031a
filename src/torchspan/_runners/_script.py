# SPDX-License-Identifier: MIT
"""Models that are Python scripts with a function ``forward`` (or ``ftn_pytorch_forward``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchspan._devices import Device
from torchspan._errors import ModelFileError
from torchspan._script import Script, ScriptError

__all__ = ["open_script"]


def open_script(path: Path, device: Device) -> Callable[..., Any]:
    """Run the script at ``path`` once for ``device`` and give its forward function.

    Raises:
        ModelFileError: The script raised an exception.
    """
    try:
        return Script(path, device.torch)
    except ScriptError as error:
        raise ModelFileError(str(error)) from error.__cause__
