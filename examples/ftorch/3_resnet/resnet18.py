# SPDX-License-Identifier: MIT
"""ResNet-18 in plain PyTorch, with random weights that are the same in every run."""

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.through = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.around = nn.Sequential()
        if stride != 1 or before != after:
            convolution = nn.Conv2d(before, after, 1, stride, bias=False)
            self.around = nn.Sequential(convolution, nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.through(x) + self.around(x))


class ResNet18(nn.Module):
    """Scores of 1000 classes for images (batch, 3, 224, 224)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        torch.manual_seed(18)
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
        )
        sizes = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        pairs = [(Block(before, after, by), Block(after, after, 1)) for before, after, by in sizes]
        self.stages = nn.Sequential(*(block for pair in pairs for block in pair))
        self.head = nn.Linear(512, classes)
        nn.init.normal_(self.head.weight, std=0.2)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(x)).mean(dim=[2, 3]))
