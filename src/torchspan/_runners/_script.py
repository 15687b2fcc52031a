# SPDX-License-Identifier: MIT
"""Models that are Python scripts with a function ``forward`` (or ``ftn_pytorch_forward``)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from torchspan._devices import Device
from torchspan._errors import ModelFileError

__all__ = ["open_script"]

_number = count()


def open_script(path: Path, device: Device) -> Callable[..., Any]:
    """Run the script at ``path`` once for ``device`` and give its forward function.

    While the script runs, tensors and modules that it makes land on the device without its naming
    one; what it makes later is its own affair. Each device has a run of its own.

    Raises:
        ModelFileError: The script raised an exception.
    """
    # A name of its own, so that several scripts called model.py may be open.
    module = ModuleType(f"torchspan_script_{next(_number)}_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
        with torch.device(device.torch):
            exec(code, vars(module))
    except Exception as error:
        del sys.modules[module.__name__]
        raise ModelFileError(
            f"the script {path} failed while it was loaded: {type(error).__name__}: {error}"
        ) from error
    finally:
        # Last from now on: what the script imports later is found, and nothing else is hidden.
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
    if hasattr(module, "forward"):
        found: Callable[..., Any] = module.forward
        return found
    listed: Callable[..., Any] = module.ftn_pytorch_forward
    return lambda *inputs: listed(list(inputs))
