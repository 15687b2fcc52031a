# SPDX-License-Identifier: MIT
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from torchspan import Placement, RankError
from torchspan._world._jobfile import JobFile, find_launching_process
from torchspan._world._spoke import Endpoint

PLACE = Placement(0, 2, 0, 2, "openmpi", "job-1")
HERE = Endpoint(("127.0.0.1",), (1234,), "secret")


def make(tmp_path, place=PLACE, meeting=0):
    return JobFile(place, meeting, tmp_path)


def soon():
    return time.monotonic() + 0.3


def test_a_reader_finds_what_was_written_and_nothing_is_left(tmp_path):
    writer, reader = make(tmp_path), make(tmp_path)
    writer.write(HERE)
    assert writer.path.stat().st_mode & 0o777 == 0o600
    assert reader.read(soon()) == HERE
    writer.remove()
    writer.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_reader_waits_for_rank_0(tmp_path):
    writer = make(tmp_path)
    threading.Timer(0.2, writer.write, [HERE]).start()
    assert make(tmp_path).read(time.monotonic() + 10) == HERE
    writer.remove()


def test_a_leftover_of_a_killed_rank_0_is_not_believed_and_is_replaced(tmp_path):
    leftover = make(tmp_path).path
    leftover.write_text(json.dumps({"addresses": ["1.2.3.4"], "ports": [9], "token": "old"}))
    with pytest.raises(RankError, match="rank 1 of 2 waited in vain for rank 0 to write"):
        make(tmp_path, Placement(1, 2, 1, 2, "openmpi", "job-1")).read(soon())
    writer = make(tmp_path)
    writer.write(HERE)
    assert make(tmp_path).read(soon()) == HERE
    writer.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_goes_with_the_process(tmp_path):
    text = (
        "import os, sys; from pathlib import Path\n"
        "from tests.test_world_jobfile import HERE, make\n"
        "file = make(Path(sys.argv[1])); file.write(HERE); print(file.path.name, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", text, tmp_path], capture_output=True, text=True, timeout=60
    )
    assert (tmp_path / killed.stdout.strip()).exists()
    reader = make(tmp_path)
    reader.path = tmp_path / killed.stdout.strip()
    with pytest.raises(RankError):
        reader.read(soon())


def test_two_jobs_at_once_and_two_meetings_of_one_never_meet(tmp_path):
    other = Placement(0, 2, 0, 2, "openmpi", "job-2")
    files = [make(tmp_path), make(tmp_path, other), make(tmp_path, meeting=1)]
    assert len({file.path for file in files}) == 3


def test_remove_leaves_the_file_of_a_later_meeting_alone(tmp_path):
    first, second = make(tmp_path), make(tmp_path)
    first.write(HERE)
    second.write(Endpoint(("127.0.0.1",), (5678,), "later"))
    first.remove()
    assert make(tmp_path).read(soon()).token == "later"
    second.remove()


def test_old_leftovers_of_any_job_are_swept_and_what_lives_is_not(tmp_path):
    other = Placement(0, 2, 0, 2, "openmpi", "job-2")
    living = make(tmp_path, other)
    living.write(HERE)
    leftover, young = (tmp_path / f"{make(tmp_path).path.name}{end}" for end in (".7", ".8"))
    leftover.touch()
    young.touch()
    for path in (leftover, living.path):
        os.utime(path, (1, 1))
    writer = make(tmp_path)
    writer.write(HERE)
    writer.remove()
    assert set(tmp_path.iterdir()) == {living.path, young}
    living.remove()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
def test_a_file_of_somebody_else_is_not_read(tmp_path):
    writer = make(tmp_path)
    writer.write(HERE)
    os.chown(writer.path, 12345, 12345)
    with pytest.raises(RankError):
        make(tmp_path).read(soon())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_name_that_somebody_else_took_is_an_error():
    text = (
        "import os, sys; from pathlib import Path\n"
        "from tests.test_world_jobfile import HERE, make\n"
        "file = make(Path(sys.argv[1]))\n"
        "file.path.write_text('mine')\n"
        "os.seteuid(12345)\n"
        "try: file.write(HERE)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        done = subprocess.run(
            [sys.executable, "-c", text, folder], capture_output=True, text=True, timeout=60
        )
        assert len(list(Path(folder).iterdir())) == 1
    assert done.stdout.startswith("RankError"), done
    assert "belongs to somebody else" in done.stdout


@pytest.mark.parametrize("shells", [0, 1, 2])
def test_the_launching_process_is_found_through_shells(tmp_path, shells):
    script = tmp_path / "show.py"
    script.write_text(
        "from torchspan import Placement\n"
        "from torchspan._world._jobfile import find_launching_process\n"
        "print(find_launching_process(Placement(0, 2, 0, 2, 'mpich')))\n"
    )
    words = [sys.executable, str(script)]
    for _ in range(shells):
        # The second command keeps the shell from becoming the program.
        words = ["sh", "-c", f"{shlex.join(words)}; true"]
    environ = {**os.environ, "PMI_RANK": "0"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environ)
    number, _, started = done.stdout.strip().partition(".")
    assert int(number) == os.getpid()
    assert int(started) > 0


def test_a_process_that_nothing_launched_has_its_parent():
    assert find_launching_process(Placement()).startswith(f"{os.getppid()}.")
