# SPDX-License-Identifier: MIT
"""These tests run on any number of ranks, each rank a pytest of its own.

They take the same steps on every rank; a rank whose test fails tells the others, whose test then
fails too, and all stop. Only the main rank reports, unless another one fails.
"""

import sys

import pytest

import torchspan


@pytest.fixture
def world():
    """The ranks of this run; each test joins and leaves anew."""
    joined = torchspan.join(timeout=120)
    yield joined
    joined.close()


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if torchspan.find_placement().rank > 0 and not config.pluginmanager.hasplugin("quiet-ranks"):
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(_QuietRank(), "quiet-ranks")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    world = item.funcargs.get("world") if hasattr(item, "funcargs") else None
    if report.failed and world is not None and world.size > 1 and not world.closed:
        error = call.excinfo.value
        try:
            world.__exit__(type(error), error, error.__traceback__)
        except torchspan.RankError as reason:
            report.longrepr = f"RankError: {reason}"
        item.session.shouldfail = "a rank failed"
    return report


class _QuietRank:
    """Prints nothing but failures."""

    def pytest_runtest_logreport(self, report):
        if report.failed:
            rank = torchspan.find_placement().rank
            print(f"rank {rank}: {report.nodeid}\n{report.longreprtext}", file=sys.stderr)
