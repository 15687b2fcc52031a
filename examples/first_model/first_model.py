# SPDX-License-Identifier: MIT
"""A model saved once, then run over several devices."""

import torch

import torchspan

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
torchspan.save(model, "net.pt2", example=torch.rand(1, 64))

batch = torch.rand(10_000, 64)
with torchspan.load("net.pt2", devices="cpu:0,cpu:1") as net:  # "all" takes every GPU
    result = net(batch)  # the rows are split over the devices and come back in order
print(torch.allclose(result, model(batch), atol=1e-5))
