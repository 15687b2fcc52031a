# SPDX-License-Identifier: MIT
"""docs/ranks.md: each command that it shows is typed in, in a copy of the example's folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LAUNCHED = re.compile(r"(RANK|WORLD_SIZE|LOCAL_|MASTER_|OMPI_|PMI|SLURM_|TORCHSPAN_)")
TIME = re.compile(r"[\d.]+ ms")


def shown():
    """Each command of the page, with the lines that it prints there."""
    text = (ROOT / "docs" / "ranks.md").read_text(encoding="utf-8")
    for block in BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            end = part.index('\n"\n') + 3 if part.splitlines()[0].count('"') == 1 else None
            end = end or part.index("\n") + 1
            yield part[:end].strip(), part[end:].splitlines()


@pytest.mark.mpi
@pytest.mark.parametrize(("command", "lines"), list(shown()), ids=lambda value: str(value)[:40])
def test_a_command_does_what_the_page_shows(tmp_path, command, lines):
    if "mpiexec" in command and shutil.which("mpiexec") is None:
        pytest.skip("there is no mpiexec")
    shutil.copy(ROOT / "examples" / "ranks" / "pi.py", tmp_path)
    inherited = {name: value for name, value in os.environ.items() if not LAUNCHED.match(name)}
    environ = {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environ, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == int("raise" in command), said
    assert lines
    for line in lines:
        assert TIME.sub("", line).strip() in TIME.sub("", said), (
            f"no longer printed: {line}\n{said}"
        )
