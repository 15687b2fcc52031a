# SPDX-License-Identifier: MIT
"""An index out of range is an error of the call, and not the end of the process."""

import pytest
import torch

import torchspan
from tests.zoo import ZOO
from torchspan import ModelError


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
def lookup(model_file):
    path = model_file("lookup")
    assert torchspan.describe(path).rows_independent
    return ZOO["lookup"].make(), path


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
