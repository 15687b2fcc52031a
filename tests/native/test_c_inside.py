# SPDX-License-Identifier: MIT
"""What a GPU needs of the library, shown on the CPU from inside: its streams do nothing there, but
order, buffers and errors are the same."""

import subprocess

import pytest


def run(program, *arguments):
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize(
    "case", ["sizes", "layouts", "large", "whole outputs", "buffers", "errors", "turns", "end"]
)
def test_staging(inside_program, case):
    run(inside_program("staging"), case)


@pytest.mark.parametrize("case", ["in place", "places", "layouts", "large", "errors"])
def test_feeding(inside_program, case):
    run(inside_program("feeder"), case)


def test_a_vendor_s_runtime(inside_program):
    run(inside_program("vendor"))
