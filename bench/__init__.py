# SPDX-License-Identifier: MIT
"""Measures of torchspan against plain PyTorch: ``python -m bench``, or ``make bench``."""
