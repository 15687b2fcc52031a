# SPDX-License-Identifier: MIT
"""Fronts that keep other projects' names, a folder each; nothing in the core knows them."""
