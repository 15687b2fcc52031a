# SPDX-License-Identifier: MIT
"""What a clone and a wheel hold: versions, package data, the commands of the Makefile and of CI."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "--wheel-dir", folder, ROOT]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as opened:
        yield opened


def test_the_wheel_is_pure_python_and_holds_every_file_of_the_package(wheel):
    assert wheel.filename.endswith("-py3-none-any.whl")
    packaged = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    there = {name.removeprefix("src/") for name in tracked if (ROOT / name).exists()}
    assert there <= packaged
    assert {"torchspan/py.typed", "torchspan/launchers.json"} <= packaged
    assert all(name.startswith("torchspan/") for name in packaged)


def test_the_wheel_asks_for_what_was_promised(wheel):
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    assert metadata["License-Expression"] == "MIT"
    always = [text for text in metadata.get_all("Requires-Dist") if "extra" not in text]
    assert sorted(re.split(r"[<>=]", text)[0] for text in always) == [
        "numpy", "rich", "safetensors", "torch",
    ]  # fmt: skip


def test_extras_all_names_every_extra_of_users():
    named = re.fullmatch(r"torchspan\[(.+)\]", EXTRAS["all"][0])[1].split(",")
    assert set(named) == set(EXTRAS) - {"all", "docs", "dev"}
    assert "torchspan[all,docs]" in EXTRAS["dev"]


def test_set_up_installs_pinned_versions_only():
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS, re.MULTILINE))
    lines = [line for line in CONSTRAINTS.splitlines() if line and not line.startswith("#")]
    assert len(pins) == len(lines)
    assert lines[0] == "torch==2.13.0"
    known = {re.sub(r"[._-]+", "-", name).lower() for name in pins}
    asked = PROJECT["project"]["dependencies"] + [
        text for extra in EXTRAS.values() for text in extra
    ]
    names = {re.match(r"[\w-]+", text)[0] for text in asked} - {"torchspan"}
    assert names <= known


def test_make_lists_every_command():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.search(r"^\.PHONY: (.+)$", text, re.MULTILINE)[1].split())
    rules = re.findall(r"^([a-z]+):.*?(## .+)?$", text, re.MULTILINE)
    assert {name for name, _ in rules} == named
    assert all(said for _, said in rules)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make"], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    assert {line.split()[0] for line in done.stdout.splitlines()} == named


@pytest.mark.parametrize("failing", [None, "check", "test"])
def test_ci_runs_every_part_without_a_terminal_and_fails_if_one_does(tmp_path, failing):
    make = tmp_path / "make"
    make.write_text(
        f'#!/bin/bash\nread -r word && exit 3\necho "$CI $1 $PWD" >>{tmp_path}/log\n'
        f'[[ $1 != "{failing}" ]]\n', encoding="utf-8",
    )  # fmt: skip
    make.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [ROOT / ".ci" / "run"], cwd=tmp_path, env=environ, input="word\n", text=True,
        capture_output=True, timeout=60,
    )  # fmt: skip
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert log == [f"true {target} {ROOT}" for target in ("check", "hosts", "test")]
    assert done.returncode == (0 if failing is None else 1)
    assert (f"failed: {failing}" in done.stderr) == (failing is not None)
