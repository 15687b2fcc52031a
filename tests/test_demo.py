# SPDX-License-Identifier: MIT
"""`make demo`: the whole of it once, and what its table says when something is wrong."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo"


@pytest.fixture
def row(monkeypatch):
    monkeypatch.syspath_prepend(DEMO)
    import row

    return row


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(DEMO)
    import table

    return table


@pytest.mark.slow
def test_the_demo_runs_everywhere_and_agrees_with_plain_pytorch(tmp_path):
    environ = {**os.environ, "TORCHSPAN_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, DEMO / "demo.py"], cwd=tmp_path, env=environ, capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [
        line for line in done.stdout.splitlines() if re.search(r" ms +\d\.\de-\d\d$| ms +0", line)
    ]
    names = ["plain PyTorch", "one device", "all devices"]
    compilers = {"Fortran": "gfortran", "C": "gcc"}
    names += [f"all devices, {name}" for name, each in compilers.items() if shutil.which(each)]
    names.append("2 ranks, torchrun")
    if shutil.which("mpiexec"):
        names.append("2 ranks, mpiexec")
    else:
        assert "skipped: mpiexec is missing; sudo apt-get install" in done.stdout
    assert [re.split(r"  +", line)[0] for line in rows] == names
    assert (tmp_path / "build" / "demo" / "net.pt2").is_file()


def program(folder, text):
    path = folder / "program.py"
    path.write_text(f"import numpy as np\n{text}", encoding="utf-8")
    return [sys.executable, str(path)]


GOOD = "print('ran on cpu:0 in 1.5 ms'); np.save('heating.npy', np.ones(3))"


def test_a_run_that_agrees(row, tmp_path):
    np.save(tmp_path / "reference.npy", np.ones(3))
    good = row.Row("good", program(tmp_path, GOOD))
    good.run(tmp_path)
    assert (good.where, good.call, good.difference) == ("cpu:0", "1.5 ms", "0.0e+00")
    assert not good.failed


@pytest.mark.parametrize("value", [1.1, float("nan")])
def test_a_run_that_differs_has_failed(row, tmp_path, value):
    np.save(tmp_path / "reference.npy", np.full(3, value))
    bad = row.Row("bad", program(tmp_path, GOOD))
    bad.run(tmp_path)
    assert bad.failed


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "np.save('heating.npy', np.ones(3))"])
def test_a_run_that_ends_badly_or_says_nothing_has_failed(row, tmp_path, text):
    bad = row.Row("bad", program(tmp_path, text))
    bad.run(tmp_path)
    assert bad.failed
    assert "failed with status" in bad.where


def test_what_an_earlier_run_wrote_does_not_count(row, tmp_path):
    for name in ("reference", "heating"):
        np.save(tmp_path / f"{name}.npy", np.ones(3))
    bad = row.Row("bad", program(tmp_path, "print('ran on cpu:0 in 1.5 ms')"))
    with pytest.raises(FileNotFoundError):
        bad.run(tmp_path)


def test_a_missing_launcher_is_said_with_what_installs_it(row, table, tmp_path):
    there = row.Row("plain", [], where="cpu", call="1.0 ms", difference="0.0e+00")
    missing = row.Row("2 ranks", ["no-such-mpiexec"], install="sudo apt-get install it")
    missing.run(tmp_path)
    assert not missing.failed
    lines = table.format_table([there, missing]).splitlines()
    assert lines[0] == "run    where  one call  largest difference"
    assert lines[1] == "plain  cpu    1.0 ms    0.0e+00"
    assert lines[2] == "2 ranks  skipped: no-such-mpiexec is missing; sudo apt-get install it"


def test_ranks_share_the_cores(row):
    assert "OMP_NUM_THREADS" not in row.share_machine(1)
    assert int(row.share_machine(2)["OMP_NUM_THREADS"]) == max(1, os.cpu_count() // 2)
