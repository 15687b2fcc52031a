# SPDX-License-Identifier: MIT
"""An index out of range is an error of the call, and not the end of the process."""

import pytest
import torch
from torch import Tensor, nn

import torchspan
from torchspan import ModelError


class Lookup(nn.Module):
    """Reads a table, a row of the input and a column of it by index."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 6)
        self.register_buffer("grid", torch.rand(9, 6))

    def forward(self, x: Tensor, word: Tensor, place: Tensor, column: Tensor) -> Tensor:
        found = self.table(word) + self.grid[place]
        return found + x.gather(1, column)


def inputs(rows, **values):
    given = {
        "x": torch.rand(rows, 5),
        "word": torch.arange(rows) % 20,
        "place": torch.arange(rows) % 9 - 4,
        "column": torch.arange(rows * 6).reshape(rows, 6) % 5,
    }
    for name, value in values.items():
        given[name].view(-1)[rows // 2] = value
    return given


@pytest.fixture(scope="module")
def lookup(tmp_path_factory):
    path = tmp_path_factory.mktemp("lookup") / "net.pt2"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = Lookup()
    assert torchspan.save(
        model, path, inputs(4), dynamic={"x": {1: "n"}}, tuned=False
    ).rows_independent
    return model, path


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_an_index_out_of_range_is_an_error_and_the_model_goes_on(lookup, devices):
    model, path = lookup
    ends = [{"word": 19}, {"place": 8}, {"place": -9}, {"column": 4}, {}]
    wrong = [{"word": 20}, {"word": -1}, {"place": 9}, {"place": -10}, {"column": 5}]
    with torchspan.load(path, devices=devices) as net:
        for rows in (0, 1, 2, 5000):
            for values in wrong if rows else []:
                with pytest.raises(ModelError, match="an index is out of range"):
                    net(*inputs(rows, **values).values())
            for values in ends if rows else [{}]:
                given = inputs(rows, **values)
                with torch.no_grad():
                    torch.testing.assert_close(net(*given.values()), model(**given))
