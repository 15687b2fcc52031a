# SPDX-License-Identifier: MIT
"""Compiled C programs over tensors: no leak, quick wrapping, ten threads; NULL everywhere."""

import re

import pytest

from tests.native.conftest import NATIVE
from tests.native.test_c_module import net_file  # noqa: F401

HEADER = (NATIVE / "include" / "torchspan_tensor.h").read_text(encoding="utf-8")
FUNCTIONS = re.findall(r"^tspan_status tspan_(\w+)\(([^;]*)\);", HEADER, re.M | re.S)
NULL_IS_FINE = {"tensor_delete", "optimizer_delete", "module_delete"}


@pytest.mark.slow
def test_a_training_loop_leaves_memory_flat(run_c, net_file):  # noqa: F811
    (line,) = run_c("tensor_loop", net_file, 100_000, environ={"OMP_NUM_THREADS": "1"})
    grown, nanoseconds = map(int, line.split())
    assert grown < 2 << 20
    # Some 150 where nothing else runs; the bar leaves room for a busy machine.
    assert nanoseconds < 1000


def test_ten_threads_at_once(run_c, net_file):  # noqa: F811
    assert run_c("tensor_threads", net_file) == ["right"]


def test_the_example(run_c):
    assert run_c("tensors/fit_c") == ["3.000 x + -2.000"]


def test_each_function_of_the_header_is_there():
    names = [name for name, _ in FUNCTIONS]
    assert len(names) == len(set(names)) == HEADER.count("tspan_status tspan_")


@pytest.mark.parametrize(("name", "parameters"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_null_everywhere(tensors, name, parameters):
    count = parameters.count(",") + 1
    function = getattr(tensors.c, f"tspan_{name}")
    reals = parameters.count("double ")
    status = function(*[None] * (count - reals))
    message = tensors.c.tspan_last_error().decode()
    assert status == (0 if name in NULL_IS_FINE else 2)
    if name not in NULL_IS_FINE:
        assert message.endswith(" is NULL; give a pointer.")
