# SPDX-License-Identifier: MIT
"""SimpleNet: one linear layer that doubles five numbers; saves its weights as a training would."""

import torch


class SimpleNet(torch.nn.Module):
    """Doubles its input of five numbers."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 5, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(2 * torch.eye(5))

    def forward(self, batch):
        return self.linear(batch)


if __name__ == "__main__":
    net = SimpleNet()
    torch.save(net.state_dict(), "simplenet_weights.pt")
    print(net(torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0]])).detach())
