# SPDX-License-Identifier: MIT
"""A model with three inputs, one of them shared by all rows, and two named outputs."""

import torch
from torch import Tensor, nn

import torchspan


class Heating(nn.Module):
    """Heating rates and cloud cover of columns on one grid of levels."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.rates = nn.Linear(levels + 2, levels)
        self.cover = nn.Linear(levels + 2, 1)

    def forward(self, profile: Tensor, surface: Tensor, grid: Tensor) -> dict[str, Tensor]:
        state = torch.cat([profile * grid, surface], dim=1)
        return {"rates": self.rates(state), "cover": self.cover(state).sigmoid()}


LEVELS, COLUMNS = 40, 1001
torch.manual_seed(0)
model = Heating(LEVELS).eval()
example = {
    "profile": torch.rand(2, LEVELS),
    "surface": torch.rand(2, 2),
    "grid": torch.linspace(0, 1, LEVELS),  # no batch dimension: every column has the same
}
torchspan.save(model, "heating.pt2", example, shared=("grid",))
print(torchspan.describe("heating.pt2").inputs[2])

row, level = torch.arange(COLUMNS)[:, None], torch.arange(LEVELS)
columns = (row + 3 * level) % 17 / 17, (2 * row + level[:2]) % 5 / 5, level / (LEVELS - 1)
with torchspan.load("heating.pt2", devices="cpu:0,cpu:1") as net:
    got = net(*columns)
wanted = model(*columns)
print({name: torch.allclose(got[name], wanted[name], atol=1e-5) for name in got})
print(f"mean rate{got['rates'].double().mean():8.4f}, cover{got['cover'].double().mean():8.4f}")
