# SPDX-License-Identifier: MIT
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from torchspan import ModelFileError
from torchspan._model_file import _cache
from torchspan._model_file._cache import cache_folder, keep_entry


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("TORCHSPAN_CACHE", str(folder))
    return folder


def there(folder):
    return (folder / "data").exists()


def fill(folder):
    (folder / "data").write_text("whole")


def test_an_entry_is_filled_once(cache):
    filled = []

    def counted(folder):
        filled.append(folder)
        fill(folder)

    first = keep_entry("abc", counted, there)
    assert keep_entry("abc", counted, there) == first == cache / "abc"
    assert len(filled) == 1
    assert os.listdir(cache) == ["abc"]


def test_the_folder_is_private(cache):
    assert cache_folder().stat().st_mode & 0o777 == 0o700


def test_without_the_variable_it_is_the_users_own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCHSPAN_CACHE")
    monkeypatch.setattr(_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cache_folder() == tmp_path / f"torchspan-{os.getuid()}"


def test_a_folder_that_others_may_write_to_is_refused(cache):
    cache.mkdir(mode=0o700)
    cache.chmod(0o777)
    with pytest.raises(ModelFileError, match="written by, another user"):
        keep_entry("abc", fill, there)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHSPAN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ModelFileError, match="cannot be made.*TORCHSPAN_CACHE"):
        keep_entry("abc", fill, there)


def test_a_failed_filling_leaves_nothing(cache):
    def fail(folder):
        fill(folder)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        keep_entry("abc", fail, there)
    assert os.listdir(cache) == []


def test_a_full_disk_is_explained(cache):
    def full(folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(ModelFileError, match="cannot be written: No space left.*TORCHSPAN_CACHE"):
        keep_entry("abc", full, there)
    assert os.listdir(cache) == []


def test_an_entry_that_is_not_whole_is_filled_again(cache):
    entry = keep_entry("abc", fill, there)
    (entry / "data").unlink()
    (entry / "other").write_text("")
    assert keep_entry("abc", fill, there) == entry
    assert os.listdir(entry) == ["data"]


def test_entries_that_nobody_used_for_long_are_removed(cache):
    keep_entry("old", fill, there)
    keep_entry("new", fill, there)
    long_ago = time.time() - (_cache.UNUSED_DAYS + 1) * 86400
    os.utime(cache / "old", (long_ago, long_ago))
    keep_entry("third", fill, there)
    assert sorted(os.listdir(cache)) == ["new", "third"]


def test_using_an_entry_keeps_it(cache):
    keep_entry("old", fill, there)
    long_ago = time.time() - (_cache.UNUSED_DAYS + 1) * 86400
    os.utime(cache / "old", (long_ago, long_ago))
    keep_entry("old", fill, there)
    keep_entry("new", fill, there)
    assert sorted(os.listdir(cache)) == ["new", "old"]


SLOW = """
    import os, sys, time
    from pathlib import Path
    from torchspan._model_file._cache import keep_entry

    def fill(folder):
        with open(os.environ["COUNT"], "a") as count:
            print("filled", file=count, flush=True)
        (folder / "half").write_text("half")
        time.sleep(float(sys.argv[1]))
        (folder / "data").write_text("whole")

    print(keep_entry("abc", fill, lambda folder: (folder / "data").exists()))
"""


def start(tmp_path, seconds):
    environment = {**os.environ, "COUNT": str(tmp_path / "count")}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW), str(seconds)],
        env=environment,
        stdout=subprocess.PIPE,
    )


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.02)


def test_many_processes_fill_it_once(tmp_path, cache):
    processes = [start(tmp_path, 0.5) for _ in range(3)]
    assert [each.wait(60) for each in processes] == [0, 0, 0]
    assert {each.stdout.read() for each in processes} == {f"{cache / 'abc'}\n".encode()}
    for each in processes:
        each.stdout.close()
    assert (tmp_path / "count").read_text() == "filled\n"
    assert os.listdir(cache) == ["abc"]


def test_a_process_killed_while_filling_leaves_nothing_half_filled(tmp_path, cache):
    killed = start(tmp_path, 600)
    wait_for(cache / "abc.partial" / "half")
    killed.send_signal(signal.SIGKILL)
    killed.wait(60)
    killed.stdout.close()
    entry = keep_entry("abc", fill, there)
    assert os.listdir(entry) == ["data"]
    assert os.listdir(cache) == ["abc"]


def test_what_others_left_is_cleared_and_what_they_still_fill_is_not(tmp_path, cache):
    busy = start(tmp_path, 600)
    wait_for(cache / "abc.partial" / "half")
    (cache / "dead.partial").mkdir()
    (cache / "dead.lock").write_text("")
    keep_entry("mine", fill, there)
    assert sorted(os.listdir(cache)) == ["abc.lock", "abc.partial", "mine"]
    busy.kill()
    busy.wait(60)
    busy.stdout.close()


def hammer(folder, rounds):
    for number in range(rounds):
        keep_entry(f"{number % 3}", fill, there)
        if number % 5 == 0:
            _cache.shutil.rmtree(folder / f"{number % 3}", ignore_errors=True)


def test_many_processes_filling_and_removing(cache):
    cache.mkdir(mode=0o700)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=hammer, args=(cache, 40)) for _ in range(3)]
    for each in processes:
        each.start()
    for each in processes:
        each.join(60)
    assert [each.exitcode for each in processes] == [0, 0, 0]
    assert not [name for name in os.listdir(cache) if name.endswith((".partial", ".lock"))]
