# SPDX-License-Identifier: MIT
"""FTorch's command ``pt2ts``; its Fortran modules are sources, in ``native/compat``."""
