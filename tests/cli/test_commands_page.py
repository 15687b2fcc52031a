# SPDX-License-Identifier: MIT
"""docs/commands.md: every command that it shows is typed in, in its order and in one folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchspan.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "commands.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FAILS = {"torchspan export simplenet.py:Net -o net.pt2 --example 1x5"}
ROOT_USER = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# What differs from one machine to the next: these lines of a report need not be the same.
OWN = re.compile(r"^(cuda|cpu|warning|\d+ of|mpi|torch|Python|OpenMP|C\+\+|Fortran|CMake|Ninja)")


def shown():
    """Each command of the page, with the lines that it prints there."""
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            yield command, lines


def test_every_command_has_its_section():
    heads = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(heads) == sorted(COMMANDS)


@pytest.mark.slow
@pytest.mark.mpi
def test_every_command_does_what_the_page_shows(tmp_path):
    if shutil.which("mpiexec") is None:
        pytest.skip("needs mpiexec")
    shutil.copy(ROOT / "examples" / "simplenet" / "simplenet.py", tmp_path)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {**os.environ, **ROOT_USER, "PATH": path}
    for command, lines in shown():
        done = subprocess.run(
            ["bash", "-c", command.replace("mpiexec ", "mpiexec --oversubscribe ")],
            cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == int(command in FAILS), f"{command}\n{said}"
        firsts = {line.split()[0] for line in said.splitlines() if line.strip()}
        wanted = [line for line in lines if line.strip() and not OWN.match(line)]
        for line in wanted:
            assert line.split()[0] in firsts, f"{command} no longer says: {line}\n{said}"
