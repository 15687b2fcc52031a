# SPDX-License-Identifier: MIT
"""The other ranks: find them, agree with them, and end together when one fails.

Placeholder text to be replaced.
"""

from torchspan._world._join import join
from torchspan._world._world import World

__all__ = ["World", "join"]
