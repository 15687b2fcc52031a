# SPDX-License-Identifier: MIT
"""Save ResNet-18, an image of ours as raw numbers, and say which classes Python finds in it."""

import numpy as np
import torch
from resnet18 import ResNet18

import torchspan


def draw_image(size=224):
    """Coloured rings: (3, size, size), from -1 to 1."""
    y, x = np.mgrid[0:size, 0:size] / (size - 1) - 0.5
    radius = np.hypot(x, y)
    return np.float32([np.cos(20 * radius), np.sin(30 * radius + x), 2 * x])


def main():
    net, image = ResNet18().eval(), draw_image()
    torchspan.save(net, "saved_resnet18_model_cpu.pt", example=torch.rand(1, 3, 224, 224))
    image.tofile("image.dat")
    with torch.no_grad():
        probabilities = net(torch.from_numpy(image)[None]).softmax(1)[0]
    for value, index in zip(*probabilities.topk(3), strict=True):
        print(f"class {int(index):3}: {100 * value:6.2f} %")


if __name__ == "__main__":
    main()
