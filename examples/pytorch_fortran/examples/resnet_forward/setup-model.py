# SPDX-License-Identifier: MIT
"""Write a ResNet-18 as traced_model.pt.

Its weights are random: put those of torchvision's resnet18, whose names are the same, into it with
``net.load_state_dict``.
"""

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(given, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample: nn.Module = nn.Identity()
        if given != width:
            way = nn.Conv2d(given, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(way, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    """Images (batch, 3, 224, 224) to scores of 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.fc = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is what is wanted
    torch.manual_seed(0)
    path = Path(__file__).with_name("traced_model.pt")
    torch.jit.trace(ResNet18().eval(), torch.ones(1, 3, 224, 224)).save(path)
    print(f"wrote {path.name}")
