# SPDX-License-Identifier: MIT
"""Small models that tests save and run; each is made with the same weights every time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ZOO", "Entry"]


@dataclass(frozen=True)
class Entry:
    """A model, an example to save it with, and how to save it."""

    file: str
    make: Callable[[], nn.Module]
    example: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)


class Mixing(nn.Module):
    """Every row's result depends on all rows."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


class Columns(nn.Module):
    """Two inputs and a shared grid, three outputs of different kinds, a second named dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.last = nn.Linear(4, 3)

    def forward(self, field: Tensor, forcing: Tensor, grid: Tensor) -> dict[str, Tensor]:
        y = self.norm(self.conv(field * grid)).tanh()
        score = self.last(y.mean((2, 3))) + forcing
        return {"tendency": y, "score": score, "kind": score.argmax(1)}


class Spectral(nn.Module):
    """Fourier transforms, which builds leave to torch, and results without a batch or a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.rand(6))

    def forward(self, x: Tensor, grid: Tensor) -> tuple[Tensor, ...]:
        low = torch.fft.irfft(torch.fft.rfft(x)[:, :2], n=6)
        return low * grid, grid * 2, self.weights, x


class Lookup(nn.Module):
    """Reads a table, a row of the input and a column of it by index."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 6)
        self.register_buffer("grid", torch.rand(9, 6))

    def forward(self, x: Tensor, word: Tensor, place: Tensor, column: Tensor) -> Tensor:
        found = self.table(word) + self.grid[place]
        return found + x.gather(1, column)


def seeded(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """The same model at every call, whatever the caller's own random state."""

    def made() -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(7)
            model = make()
            for buffer in model.buffers():
                if buffer.is_floating_point():
                    buffer.copy_(torch.rand_like(buffer) + 0.5)
        return model.eval()

    return made


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64)
    )


ZOO = {
    "mlp": Entry(
        "mlp.pt2",
        seeded(_mlp),
        lambda: torch.rand(1, 64),
        {"static_batches": (1,), "input_names": ("x",), "output_names": ("y",)},
    ),
    "tuned": Entry("tuned.pt2", seeded(_mlp), lambda: torch.rand(1, 64), {"tuned": True}),
    "columns": Entry(
        "columns.pt2",
        seeded(Columns),
        lambda: {
            "field": torch.rand(2, 2, 8, 6),
            "forcing": torch.rand(2, 3),
            "grid": torch.rand(6),
        },
        {"shared": ("grid",), "dynamic": {"field": {2: "ny"}}},
    ),
    "mixing": Entry("mixing.pt2", seeded(Mixing), lambda: torch.rand(4, 3, dtype=torch.float64)),
    "spectral": Entry(
        "spectral.pt2",
        seeded(Spectral),
        lambda: (torch.rand(2, 6), torch.rand(6)),
        {"shared": ("grid",)},
    ),
    "lookup": Entry(
        "lookup.pt2",
        seeded(Lookup),
        lambda: {
            "x": torch.rand(4, 5),
            "word": torch.arange(4),
            "place": torch.arange(4) - 4,
            "column": torch.arange(24).reshape(4, 6) % 5,
        },
        {"dynamic": {"x": {1: "n"}}},
    ),
    "script": Entry("mlp.pt", seeded(_mlp), lambda: torch.rand(1, 64)),
}
