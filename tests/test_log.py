# SPDX-License-Identifier: MIT
import json
import logging
import os
import re
import subprocess
import sys
import threading
from importlib import resources

import pytest

from torchspan import _log

LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK")
# Only _log is imported, under its own name but without the package, which would load torch.
LOAD = """
import importlib.util as u
from pathlib import Path
spec = u.spec_from_file_location("_log", {path!r})
_log = u.module_from_spec(spec)
spec.loader.exec_module(_log)
"""


def run_log(code, **environ):
    kept = {k: v for k, v in os.environ.items() if k not in (*LAUNCHER, "TORCHSPAN_LOG")}
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(path=_log.__file__) + code],
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


SPEAK = "_log.log.info('chose %s', 'cpu:0'); _log.log.debug('chunk of %d rows', 512)"


@pytest.mark.parametrize("text", ["", " ", "off", "OFF"])
def test_nothing_is_said_unless_asked(text):
    assert run_log(SPEAK, TORCHSPAN_LOG=text) == ""


def test_nothing_is_said_without_the_variable():
    assert run_log(SPEAK) == ""


@pytest.mark.parametrize(("text", "lines"), [("info", 1), (" Info ", 1), ("debug", 2)])
def test_the_level_is_what_the_variable_says(text, lines):
    said = run_log(SPEAK, TORCHSPAN_LOG=text).splitlines()
    assert len(said) == lines
    assert re.fullmatch(r"torchspan \d+ ms: chose cpu:0", said[0])


def test_a_level_that_makes_no_sense_is_said_once():
    said = run_log(SPEAK, TORCHSPAN_LOG="loud")
    assert said == (
        "torchspan: TORCHSPAN_LOG='loud' is not one of info, debug, off; logging stays off.\n"
    )


def test_lines_carry_the_rank():
    said = run_log(SPEAK, TORCHSPAN_LOG="info", RANK="3")
    assert re.fullmatch(r"torchspan rank 3 \d+ ms: chose cpu:0\n", said)
    said = run_log(SPEAK, TORCHSPAN_LOG="info", OMPI_COMM_WORLD_RANK="5")
    assert said.startswith("torchspan rank 5 ")


def test_the_rank_is_known_under_every_launcher():
    table = json.loads(resources.files("torchspan").joinpath("launchers.json").read_text())
    assert set(_log._RANKS) == {row["rank"][0] for row in table["launchers"]}


def test_timed_says_what_was_done_and_how_long_it_took():
    code = "import time\nwith _log.timed('opened %s', 'net.pt2'): time.sleep(0.02)"
    said = run_log(code, TORCHSPAN_LOG="info")
    match = re.fullmatch(r"torchspan \d+ ms: opened net.pt2 \((\d+\.\d) ms\)\n", said)
    assert match
    assert 20 <= float(match[1]) < 2000
    assert run_log(code) == ""


def test_timed_says_nothing_of_what_failed(caplog):
    caplog.set_level(logging.INFO, logger="torchspan")
    with pytest.raises(ZeroDivisionError), _log.timed("divided"):
        _ = 1 / 0
    assert not caplog.records


def test_a_program_with_its_own_logging_sees_the_same_lines(caplog):
    caplog.set_level(logging.INFO, logger="torchspan")
    with _log.timed("packed %d rows", 7):
        pass
    assert [record.name for record in caplog.records] == ["torchspan"]
    assert caplog.records[0].getMessage().startswith("packed 7 rows (")


def test_a_notice_is_said_once_from_many_threads(capsys, monkeypatch):
    monkeypatch.setattr(_log, "_said", set())
    threads = [threading.Thread(target=_log.notice, args=("compiling.",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _log.notice("another matter.")
    assert capsys.readouterr().err == "torchspan: compiling.\ntorchspan: another matter.\n"
