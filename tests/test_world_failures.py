# SPDX-License-Identifier: MIT
"""One rank fails in real processes; the others must end with its error, and soon."""

import re
from pathlib import Path

import pytest

from tests.launchers import LAUNCHERS, launch

PROGRAM = Path(__file__).parent / "data" / "failing_rank.py"
SAID = {
    "raise": "failed with ValueError: the sample is upside down",
    "exit": "ended with exit status 3",
    "kill": r"(\(process \d+ on \S+\) )?went away without a word",
    "interrupt": r"was interrupted \(Ctrl-C\)",
}


def fail(launcher, ranks, failing, how, others, manner="with"):
    return launch(launcher, ranks, PROGRAM, failing, how, others, manner).end(60)


def assert_told(ended, rank, failing, how):
    """Rank ``rank`` ended with the error of rank ``failing``, in one line."""
    pattern = rf"torchspan: rank {rank}: RankError: rank {failing} {SAID[how]}"
    assert re.search(pattern, ended.errors), ended.errors
    assert f"rank {rank} noticed nothing" not in ended.output


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize(
    ("how", "others"),
    [("raise", "sleep"), ("raise", "reduce"), ("kill", "reduce"), ("kill", "compute")],
)
def test_the_other_rank_ends_with_the_error(launcher, how, others):
    ended = fail(launcher, 2, 1, how, others)
    assert_told(ended, 0, 1, how)
    assert ended.status != 0


@pytest.mark.parametrize(
    ("launcher", "how", "others"),
    [
        ("torchrun", "exit", "torch"),
        ("torchrun", "raise", "torch"),
        pytest.param("mpiexec", "kill", "torch", marks=pytest.mark.mpi),
        pytest.param("mpiexec", "interrupt", "sleep", marks=pytest.mark.mpi),
    ],
)
def test_every_other_rank_ends_with_the_error_of_rank_0(launcher, how, others):
    ended = fail(launcher, 3, 0, how, others)
    assert_told(ended, 1, 0, how)
    assert_told(ended, 2, 0, how)


@pytest.mark.parametrize("how", ["raise", "interrupt"])
def test_an_unhandled_exception_counts_without_a_with_statement(how):
    ended = fail("torchrun", 2, 1, how, "torch", "call")
    assert_told(ended, 0, 1, how)


def test_the_failed_rank_gives_the_exit_status(request):
    ended = fail("mpiexec", 2, 1, "exit", "sleep")
    assert ended.status == 3
    assert_told(ended, 0, 1, "exit")


def test_exit_without_a_with_statement_ends_the_others_too():
    ended = fail("torchrun", 2, 1, "exit", "sleep", "call")
    assert re.search(
        r"torchspan: rank 0: RankError: rank 1 had ended before this rank was done", ended.errors
    ), ended.errors


def test_a_rank_that_left_is_named_by_those_that_still_wait_for_it():
    ended = fail("mpiexec", 2, 1, "exit", "reduce", "call")
    assert "RankError: rank 1 had left the world while this rank still waited" in ended.errors
    assert "Every rank must take part in each of them" in ended.errors


def test_a_rank_that_waits_in_a_group_of_the_programs_own_is_freed_too():
    ended = fail("torchrun", 2, 1, "raise", "group")
    assert_told(ended, 0, 1, "raise")
    seconds = float(re.search(r"rank 0: \w+ after ([\d.]+) s", ended.output)[1])
    assert seconds < 30


def test_a_rank_that_nothing_can_interrupt_is_ended_as_a_last_resort():
    ended = fail("torchrun", 2, 1, "raise", "stuck")
    assert_told(ended, 0, 1, "raise")
    assert "inside one call that nothing could interrupt for 2 s" in ended.errors


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ctrl_c_ends_all_ranks_in_a_few_lines(launcher):
    running = launch(launcher, 2, PROGRAM, 9, "none", "sleep", "with")
    running.wait_for("begins", times=2)
    running.interrupt()
    ended = running.end(30)
    own = [line for line in ended.errors.splitlines() if "torchspan" in line]
    assert ended.status != 0
    assert len(own) <= 2
    assert "failing_rank.py" not in ended.errors
