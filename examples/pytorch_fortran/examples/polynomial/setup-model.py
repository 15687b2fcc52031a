# SPDX-License-Identifier: MIT
"""Write the network that is to learn a polynomial, untrained, as traced_model.pt."""

import warnings
from pathlib import Path

import torch
from torch import nn

warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is what is wanted
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
path = Path(__file__).with_name("traced_model.pt")
torch.jit.trace(net, torch.ones(1024, 1)).save(path)
print(f"wrote {path.name}")
