# SPDX-License-Identifier: MIT
"""One runner a device: a model opened there, called with tensors that are there already."""

from torchspan._runners._eager import EagerRunner
from torchspan._runners._form import Form, Runner
from torchspan._runners._open import Options, open_runners

__all__ = ["EagerRunner", "Form", "Options", "Runner", "open_runners"]
