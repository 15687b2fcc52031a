# SPDX-License-Identifier: MIT
import argparse
import subprocess
import sys
from importlib import import_module

import pytest

import torchspan
from torchspan import cli
from torchspan.cli import COMMANDS, devices


def fail_with(monkeypatch, error):
    def run(arguments):
        raise error

    monkeypatch.setattr(devices, "run", run)


def test_help_lists_every_command(torchspan_command):
    done = torchspan_command("--help")
    assert done.status == 0
    for name in COMMANDS:
        assert f"\n    {name} " in done.out
    assert "'torchspan COMMAND --help' tells more" in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_is_complete(torchspan_command, name):
    done = torchspan_command(name, "--help")
    assert (done.status, done.err) == (0, "")
    example = done.out.split("example:\n", 1)[1].strip()
    assert "\n" not in example
    assert f"torchspan {name}" in example
    parser = argparse.ArgumentParser().add_subparsers()
    import_module(f"torchspan.cli.{name}").add_parser(parser)
    assert all(action.help for action in parser.choices[name]._actions)


def test_the_version(torchspan_command):
    assert torchspan_command("--version").out == f"torchspan {torchspan.__version__}\n"


@pytest.mark.parametrize("words", [[], ["nonsense"], ["devices", "--nonsense"], ["run"]])
def test_a_command_line_that_makes_no_sense_is_status_2(torchspan_command, words):
    done = torchspan_command(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("usage: torchspan")


def test_options_are_not_guessed_from_their_beginning(torchspan_command):
    assert torchspan_command("devices", "--js").status == 2


def test_an_error_is_one_line_and_status_1(torchspan_command, monkeypatch):
    fail_with(monkeypatch, torchspan.ModelError("it failed."))
    done = torchspan_command("devices")
    assert (done.status, done.out, done.err) == (1, "", "torchspan: error: it failed.\n")


def test_an_error_of_the_system_is_one_line_and_names_the_file(torchspan_command, monkeypatch):
    fail_with(monkeypatch, PermissionError(13, "Permission denied", "y.npy"))
    done = torchspan_command("devices")
    assert (done.status, done.err) == (1, "torchspan: error: y.npy: Permission denied.\n")
    fail_with(monkeypatch, OSError("something else"))
    assert torchspan_command("devices").err == "torchspan: error: something else.\n"


def test_ctrl_c_is_status_130(torchspan_command, monkeypatch):
    fail_with(monkeypatch, KeyboardInterrupt())
    done = torchspan_command("devices")
    assert (done.status, done.out, done.err) == (130, "", "torchspan: interrupted\n")


def test_an_error_of_ours_keeps_its_traceback(monkeypatch):
    fail_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main(["devices"])


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m torchspan doctor --json | head -c 1"
    shell = ["bash", "-c", f"set -o pipefail; {command}; echo ${{PIPESTATUS[0]}}"]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    # What fits into the pipe is written before the reader goes, so both ends are right.
    assert done.stdout in ("{141\n", "{0\n")


def test_python_m_torchspan_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "torchspan", "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == f"torchspan {torchspan.__version__}\n"


def test_only_the_commands_know_rich():
    code = "import sys, torchspan; print('rich' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "False\n"
