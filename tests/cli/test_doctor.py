# SPDX-License-Identifier: MIT
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchspan import Placement
from torchspan.cli import _survey, doctor
from torchspan.cli._facts import Facts, FolderFacts, RankFacts
from torchspan.cli.doctor import format_cores

SOUND = Facts(
    torch="2.13.0",
    torch_range="<2.16,>=2.11",
    ranks=(RankFacts(host="a"),),
    cache=FolderFacts("/cache", 1 << 40),
    temporary=FolderFacts("/scratch", 1 << 40),
)


@pytest.fixture
def facts_are(monkeypatch):
    """Let the survey find these facts."""

    def give(facts):
        monkeypatch.setattr(doctor, "find_facts", lambda ranks, troubles: facts)

    return give


def test_a_report_of_this_machine(torchspan_command):
    done = torchspan_command("doctor")
    assert done.status in (0, 1)
    heads = [line for line in done.out.splitlines() if line and line[0].isupper()]
    assert heads[0] == "Versions"
    for head in ("Devices", "Ranks", "Tools", "Folders"):
        assert head in heads
    assert f"0 of 1  {os.uname().nodename}" in done.out
    assert f" of {os.cpu_count()}" in done.out


def test_json_is_pure_and_holds_every_fact(torchspan_command):
    found = torchspan_command("doctor", "--json").json
    assert set(Facts.__dataclass_fields__) | {"findings"} == set(found)
    (rank,) = found["ranks"]
    assert rank["cores"] == sorted(os.sched_getaffinity(0))
    assert rank["threads"] >= 1
    assert found["devices"][-1]["device"] == "cpu:0"
    assert all(Path(path).name.startswith("lib") for path in found["openmp"])


def test_warnings_leave_the_status_0_and_errors_make_it_1(torchspan_command, facts_are):
    facts_are(SOUND)
    done = torchspan_command("doctor")
    assert (done.status, done.out.splitlines()[-1]) == (0, "Nothing is wrong.")
    facts_are(replace(SOUND, pretended=("2 cuda",)))
    done = torchspan_command("doctor")
    assert done.status == 0
    assert "\nwarning: 2 cuda pretended" in done.out
    assert "Nothing is wrong" not in done.out
    facts_are(replace(SOUND, troubles=("it is broken.",)))
    done = torchspan_command("doctor")
    assert (done.status, "\nerror: it is broken.\n" in done.out) == (1, True)
    assert torchspan_command("doctor", "--json").status == 1


def test_pretending_is_reported(torchspan_command, monkeypatch):
    monkeypatch.setenv("TORCHSPAN_PRETEND_CUDA", "2")
    found = torchspan_command("doctor", "--json").json
    assert found["pretended"] == ["2 cuda"]
    assert any("2 cuda pretended" in each["text"] for each in found["findings"])
    assert found["ranks"][0]["device"] == "cuda:0"


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"RANK": "1", "LOCAL_RANK": "1"}, "the variables of torchrun are half set"),
        ({"TORCHSPAN_PRETEND_CUDA": "many"}, "TORCHSPAN_PRETEND_CUDA='many' is not a number"),
    ],
)
def test_variables_that_make_no_sense_are_an_error_in_the_report(
    torchspan_command, monkeypatch, variables, text
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = torchspan_command("doctor")
    assert done.status == 1
    assert f"error: {text}" in " ".join(done.out.split())
    assert done.out.count(text) == 1


def test_ranks_that_cannot_join_are_reported_by_the_main_one(torchspan_command, monkeypatch):
    def fail(device):
        raise doctor.TorchspanError("nobody came.")

    monkeypatch.setattr(doctor, "join", fail)
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    done = torchspan_command("doctor")
    assert (done.status, "error: the ranks cannot join: nobody came." in done.out) == (1, True)
    monkeypatch.setenv("RANK", "1")
    done = torchspan_command("doctor")
    assert (done.status, done.out, done.err) == (1, "", "torchspan: error: nobody came.\n")


@pytest.mark.mpi
def test_the_main_rank_reports_all_ranks():
    if shutil.which("mpiexec") is None:
        pytest.skip("needs mpiexec")
    command = ["mpiexec", "--oversubscribe", "--bind-to", "none", "-n", "2"]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [*command, sys.executable, "-m", "torchspan", "doctor"],
        env={**os.environ, **root},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Versions") == 1
    rows = [line.split() for line in done.stdout.splitlines()]
    ranks = [row for row in rows if len(row) > 4 and row[1] == "of" and row[4] == "openmpi"]
    assert [row[0] for row in ranks] == ["0", "1"]


@pytest.mark.parametrize(
    ("cores", "text"),
    [((0,), "0"), ((0, 1, 2, 3), "0-3"), ((5, 1, 3, 2), "1-3,5"), ((), "")],
)
def test_cores_read_well(cores, text):
    assert format_cores(cores) == text


def test_tools_are_found_by_their_variable_first(monkeypatch, tmp_path):
    tool = tmp_path / "mycxx"
    tool.write_text("#!/bin/sh\necho first line\necho mycxx version 7.1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("CXX", f"{tool} -O2")
    found = _survey._find_tool("C++ compiler", "CXX", ("g++",))
    assert (found.path, found.version) == (str(tool), "mycxx version 7.1")
    monkeypatch.setenv("CXX", str(tmp_path / "absent"))
    assert _survey._find_tool("C++ compiler", "CXX", ("g++",)).path is None
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _survey._find_tool("C++ compiler", "CXX", ("mycxx",)).path == str(tool)


def test_a_tool_that_does_not_start_says_so(monkeypatch, tmp_path):
    tool = tmp_path / "mpiexec"
    tool.write_text("#!/no/such/interpreter\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "does not answer" in _survey._find_tool("mpiexec", None, ("mpiexec",)).version


def test_programs_are_asked_without_the_launchers_variables(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("PMI_RANK", "0")
    assert _survey._ask(["env"]).count("RANK") == 0


def test_an_mpi4py_that_does_not_load_is_told(monkeypatch):
    monkeypatch.setattr(_survey, "_ASK_MPI4PY", "raise ImportError('libmpi.so.40 is gone')")
    monkeypatch.setattr(_survey.importlib.util, "find_spec", lambda name: object())
    found = _survey._find_mpi(_survey.Tool("mpiexec"))
    assert found.trouble == "ImportError: libmpi.so.40 is gone"
    monkeypatch.setattr(_survey.importlib.util, "find_spec", lambda name: None)
    assert _survey._find_mpi(_survey.Tool("mpiexec")) == _survey.MpiFacts()


def test_a_cache_that_cannot_be_made_is_told(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHSPAN_CACHE", str(tmp_path / "file" / "cache"))
    assert "cannot be made" in _survey._cache().trouble
    monkeypatch.setenv("TORCHSPAN_CACHE", str(tmp_path / "cache"))
    found = _survey._cache()
    assert (found.trouble, found.executable, found.free > 0) == (None, True, True)


def test_a_folder_that_is_not_there_or_not_ours_is_told(monkeypatch, tmp_path):
    assert "cannot be read: No such file" in _survey._look_into(tmp_path / "absent").trouble
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "may not be written" in _survey._look_into(tmp_path).trouble


def test_a_folder_mounted_noexec_is_seen(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,noexec", "tmpfs", str(tmp_path)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        assert not _survey._look_into(tmp_path).executable
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_the_range_of_torch_is_that_of_the_package():
    assert "<2.16" in _survey._torch_range()
    assert ">=2.11" in _survey._torch_range()


def test_the_rank_knows_which_gpu_it_has(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = _survey.Device("cuda", 1, "cuda:1")
    assert _survey._physical(gpu) == "1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 7")
    assert _survey._physical(gpu) == "7"
    assert _survey._physical(_survey.Device("cuda", 0, "cpu")) is None


def test_a_rank_says_where_it_is():
    found = _survey.find_rank_facts(Placement(3, 4, 1, 2, "slurm"))
    assert (found.rank, found.size, found.local_rank, found.launcher) == (3, 4, 1, "slurm")
    assert found.cores == tuple(sorted(os.sched_getaffinity(0)))
