# SPDX-License-Identifier: MIT
"""``python -m torchspan``: the ``torchspan`` command, for when its script is not on the path."""

import sys

from torchspan.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
