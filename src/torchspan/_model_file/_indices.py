# SPDX-License-Identifier: MIT
"""Indices that are checked before a CPU build's own loops.

The loops check every index themselves, but inside an OpenMP region, which no exception may leave:
the process would end. A check of its own in front of them fails as any other operation does.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

__all__ = ["guard_indices"]

_aten = torch.ops.aten
# Operators that take an input, a dimension of it and indices into that.
_ALONG = {
    _aten.gather.default,
    _aten.index_select.default,
    _aten.scatter.src,
    _aten.scatter.value,
    _aten.scatter_add.default,
    _aten.index_add.default,
}
_TUPLES = {_aten.index.Tensor, _aten.index_put.default}


def guard_indices(module: fx.GraphModule) -> fx.GraphModule:
    """Put a check before each operator of ``module`` that reads or writes by index."""
    graph = module.graph
    for node in list(graph.nodes):
        for indexed, dim, indices, wraps in _indexed(node):
            with graph.inserting_before(node):
                size = graph.call_function(_aten.sym_size.int, (indexed, dim))
                least = graph.call_function(operator.neg, (size,)) if wraps else 0
                below = graph.call_function(_aten.lt.Scalar, (indices, least))
                above = graph.call_function(_aten.ge.Scalar, (indices, size))
                wrong = graph.call_function(_aten.logical_or.default, (below, above))
                some = graph.call_function(_aten.any.default, (wrong,))
                right = graph.call_function(_aten.logical_not.default, (some,))
                value = graph.call_function(_aten.item.default, (right,))
                graph.call_function(_aten._assert_scalar.default, (value, "index out of range"))
    module.recompile()
    return module


def _indexed(node: fx.Node) -> Iterator[tuple[Any, int, Any, bool]]:
    """What a node indexes: the tensor, which dimension, the indices, whether -1 is the last one."""
    if node.target is _aten.embedding.default:
        yield node.args[0], 0, node.args[1], False
    elif node.target in _ALONG:
        yield node.args[0], node.args[1], node.args[2], False  # type: ignore[misc]
    elif node.target in _TUPLES:
        whole: Any = node.args[1]
        dtypes = [each.meta["val"].dtype for each in whole if each is not None]
        # Masks take as many dimensions as they have, and cannot be out of range.
        if torch.bool not in dtypes and torch.uint8 not in dtypes:
            for dim, indices in enumerate(whole):
                if indices is not None:
                    yield node.args[0], dim, indices, True
