# SPDX-License-Identifier: MIT
"""A network that learns to double five numbers: a model for Python, Fortran and C as it is."""

from pathlib import Path

import torch

WEIGHTS = "doubling.pt"

net = torch.nn.Linear(5, 5, bias=False)
torch.nn.init.zeros_(net.weight)
if Path(WEIGHTS).exists():
    net.load_state_dict(torch.load(WEIGHTS))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)


def forward(x):
    return net(x)


def train(x, target):
    """Take one step, unless training is complete; say whether it is, and the loss."""
    loss = torch.nn.functional.mse_loss(net(x), target)
    completed = bool(loss < 1e-8)
    if not completed:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return completed, loss


def save(path):
    torch.save(net.state_dict(), path)


if __name__ == "__main__":
    x = torch.eye(5)
    completed = False
    while not completed:
        completed, loss = train(x, 2 * x)
    save(WEIGHTS)
    print(f"wrote {WEIGHTS}")
