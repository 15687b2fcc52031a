# SPDX-License-Identifier: MIT
import json
import os
from dataclasses import dataclass

import pytest

from torchspan import _log
from torchspan.cli import main

PREFIXES = ("TORCHSPAN_", "OMPI_", "PMIX_", "PMI_", "SLURM_", "MV2_")
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")


@dataclass
class Done:
    """What one command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Commands run as in a fresh shell: no launcher, nothing pretended, an empty folder."""
    for name in list(os.environ):
        if name.startswith(PREFIXES) and name != "TORCHSPAN_CACHE":
            monkeypatch.delenv(name)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_log, "_said", set())
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def torchspan_command(capfd):
    """Run ``torchspan`` with these words, in this process."""

    def run(*words):
        capfd.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as leaving:
            status = leaving.code
        captured = capfd.readouterr()
        return Done(status, captured.out, captured.err)

    return run
