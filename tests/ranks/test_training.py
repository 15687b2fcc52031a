# SPDX-License-Identifier: MIT
import torch
from torch.nn.parallel import DistributedDataParallel


def test_ddp_over_the_world_trains_as_one_process_would(world):
    torch.manual_seed(3)
    module = torch.nn.Linear(4, 2)
    alone = torch.nn.Linear(4, 2)
    alone.load_state_dict(module.state_dict())
    shared = DistributedDataParallel(module)
    rows = torch.randn(6 * world.size, 4, generator=torch.Generator().manual_seed(5))
    own = rows[6 * world.rank : 6 * (world.rank + 1)]

    alone(rows).square().mean().backward()
    shared(own).square().mean().backward()
    assert torch.allclose(module.weight.grad, alone.weight.grad, atol=1e-6)
