# SPDX-License-Identifier: MIT
"""Write the weights that model.py begins with, as initial_weights.pt."""

from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)
path = Path(__file__).with_name("initial_weights.pt")
torch.save(nn.Linear(4, 2).state_dict(), path)
print(f"wrote {path.name}")
