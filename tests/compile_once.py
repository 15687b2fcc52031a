# SPDX-License-Identifier: MIT
"""A compiler launcher: each source is compiled once a run, whatever number of builds it is part of.

Several tests build the same library as different users do, each in a folder of its own. The
compiler's own answer, the object and what it depends on, is kept for the next build that asks for
the same with the same words.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["STORE"]

STORE = "COMPILED_ONCE"
PATHS = ("-o", "-MF", "-MT", "-MQ")


def main(command: list[str]) -> int:
    """Compile, or copy what was compiled; the compiler's exit status."""
    store = os.environ.get(STORE)
    if not store or "-c" not in command or "-MF" not in command or "-o" not in command:
        return subprocess.call(command)
    paths = {name: command[command.index(name) + 1] for name in PATHS if name in command}
    includes = [word.removeprefix("-I") for word in command if word.startswith("-I/")]
    kept = Path(store, _key(command, includes))
    places = [paths[name] for name in ("-MT", "-MQ") if name in paths] + includes
    with kept.with_suffix(".lock").open("w") as lock:
        # Whoever comes second waits: two compilers at once would only take turns.
        fcntl.flock(lock, fcntl.LOCK_EX)
        object_, depends = kept.with_suffix(".o"), kept.with_suffix(".d")
        if object_.exists():
            shutil.copyfile(object_, paths["-o"])
            text = depends.read_text(encoding="utf-8")
            for index, place in enumerate(places):
                text = text.replace(f"@{index}@", place)
            Path(paths["-MF"]).write_text(text, encoding="utf-8")
            return 0
        status = subprocess.call(command)
        if status == 0:
            text = Path(paths["-MF"]).read_text(encoding="utf-8")
            for index, place in enumerate(places):
                text = text.replace(place, f"@{index}@")
            depends.write_text(text, encoding="utf-8")
            shutil.copyfile(paths["-o"], object_)
    return status


def _key(command: list[str], includes: list[str]) -> str:
    """What the object depends on: the words but for paths of the build, headers made by it."""
    total = hashlib.sha256()
    # Warnings leave the object as it is, unless they are errors.
    dropped = ("-I/",) if "-Werror" in command else ("-I/", "-W")
    skip = False
    for word in command:
        if not skip and word not in PATHS and not word.startswith(dropped):
            # One compiler, or one torch, may be reached by several links.
            total.update((os.path.realpath(word) if word[0] == "/" else word).encode() + b"\0")
        skip = word in PATHS
    files = [Path(command[command.index("-c") + 1])]
    for folder in includes:
        files += sorted(each for each in Path(folder).glob("*.h*") if each.is_file())
    for file in files:
        total.update(file.name.encode() + b"\0" + file.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
