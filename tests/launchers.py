# SPDX-License-Identifier: MIT
"""Start a program on several ranks, under any launcher that this machine has."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

LAUNCHERS = ("torchrun", pytest.param("mpiexec", marks=pytest.mark.mpi))

_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_PLACES = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMI", "SLURM_", "TORCHSPAN_LOG")


@dataclass
class Ended:
    """A program that ended: its status, what it printed, and how long it took."""

    status: int
    output: str
    errors: str
    seconds: float


class Running:
    """A program that runs in a process group of its own."""

    def __init__(self, words: Sequence[str], environ: dict[str, str] | None = None) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_PLACES)}
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            words,
            env={**inherited, **_AS_ROOT, "OMP_NUM_THREADS": "1", **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def interrupt(self) -> None:
        """Press Ctrl-C: the signal goes to the whole group, as from a terminal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read the output until ``text`` has come so many times."""
        assert self.process.stdout is not None
        found = 0
        for line in self.process.stdout:
            found += line.count(text)
            if found >= times:
                return
        ended = self.end()
        pytest.fail(f"{text!r} came {found} times of {times}:\n{ended.errors}")

    def end(self, seconds: float = 120) -> Ended:
        """Wait until it ends; one that hangs is killed and fails the test."""
        try:
            output, errors = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            output, errors = self.process.communicate()
            pytest.fail(f"still running after {seconds} s:\n{output}\n{errors}")
        seconds = time.monotonic() - self.started
        return Ended(self.process.returncode, output, errors, seconds)


def launching(launcher: str, ranks: int) -> list[str]:
    """The words that start Python on ``ranks`` ranks; what follows them is the program."""
    if launcher == "torchrun":
        words = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        return [sys.executable, *words]
    if shutil.which("mpiexec") is None:
        pytest.skip("there is no mpiexec")
    return ["mpiexec", "--oversubscribe", "-n", str(ranks), sys.executable]


def launch(
    launcher: str, ranks: int, *words: object, environ: dict[str, str] | None = None
) -> Running:
    """Start a program on ``ranks`` ranks of this host."""
    return Running([*launching(launcher, ranks), *map(str, words)], environ)


def launch_by_variables(
    words: Sequence[object], variables: Sequence[dict[str, str]]
) -> list[Running]:
    """Start one process for each set of variables, as a launcher that is not here would."""
    return [Running([sys.executable, *map(str, words)], each) for each in variables]
