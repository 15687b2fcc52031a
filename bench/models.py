# SPDX-License-Identifier: MIT
"""The models that are measured, saved once in a folder of the bench's own."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import torchspan

__all__ = ["linear", "mlp", "saved"]


def linear() -> nn.Module:
    """The smallest model: what a call costs shows best on it."""
    torch.manual_seed(0)
    return nn.Linear(5, 5).eval()


def mlp() -> nn.Module:
    """The MLP 64-256-256-64 with relu: a typical surrogate of a scientific code."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64)
    ).eval()


def saved(
    folder: Path, model: nn.Module, width: int, devices: str = "cpu", tuned: bool = True
) -> Path:
    """A file of ``model`` for any batch of ``width`` numbers a row."""
    path = folder / f"{type(model).__name__}-{devices}.pt2"
    torchspan.save(model, path, torch.rand(2, width), devices=devices, tuned=tuned)
    return path
