# SPDX-License-Identifier: MIT
"""Measures of the native library."""
