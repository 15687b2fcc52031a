# SPDX-License-Identifier: MIT
"""Check what ruff and mypy do not: sizes, names, licence lines and words of the whole repository.

Reads the files that git tracks, or would, and prints one line for each rule broken. The rules stand
in the constants below; the reasons are the reader's: small files, small functions, one glance.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import function_lengths

MEDIAN_LINES, MOST_LINES, LARGEST_FILE = 150, 400, 800
SHARE_WITHIN_MOST = 0.9
LONGEST_FUNCTION, LONGEST_LINE, EXAMPLE_LINES, ROOT_ENTRIES = 60, 100, 60, 16

SOURCES = {".py", ".c", ".h", ".cpp", ".f90", ".F90", ".cmake", ".sh", ".in"}
SOURCE_NAMES = {"Makefile", "CMakeLists.txt"}
LICENCE = "SPDX-License-Identifier: MIT"
NO_NAMES = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}

# A path of one developer's machine, or an index to install from, is wrong everywhere else.
NO_WORDS = re.compile(
    r"(?<![\w.])/(?:home|root|work|Users)/|--(?:extra-)?index-url|--find-links"
    r"|\bpypi\.|pythonhosted\.|download\.pytorch\.|\bconda\.anaconda\.",
)


def main() -> int:
    """Print every rule broken in this repository; 1 if there is one."""
    root = Path(__file__).parents[1]
    problems = list(find_problems(root, list_files(root)))
    for problem in problems:
        print(problem, file=sys.stderr)
    return min(1, len(problems))


def list_files(root: Path) -> list[Path]:
    """The files under ``root`` that git tracks or would track, relative to it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (root / name).is_file()]


def find_problems(root: Path, files: list[Path]) -> Iterator[str]:
    """Every rule that ``files`` under ``root`` break, one text each."""
    entries = sorted({file.parts[0] for file in files})
    if len(entries) > ROOT_ENTRIES:
        yield f"the root has {len(entries)} entries; {ROOT_ENTRIES} at most: {', '.join(entries)}"
    lengths: dict[Path, int] = {}
    for file in files:
        if file.stem in NO_NAMES or NO_NAMES & set(file.parts[:-1]):
            yield f"{file}: the name says nothing; modules are nouns that say what is in them"
        text = _read(root / file)
        if not text:
            continue
        yield from _find_words(file, text)
        if _is_source(file, text):
            lengths[file] = text.count("\n")
            yield from _find_in_source(file, text)
    yield from _find_sizes(lengths)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def _is_source(file: Path, text: str) -> bool:
    named = file.suffix in SOURCES or file.name in SOURCE_NAMES
    return named or (not file.suffix and text.startswith("#!"))


def _find_words(file: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        found = NO_WORDS.search(line)
        if found and file != Path("tools/style.py"):
            yield f"{file}:{number}: {found[0]!r} is of one machine or one index; take it out"


def _find_in_source(file: Path, text: str) -> Iterator[str]:
    lines = text.splitlines()
    if not any(LICENCE in line for line in lines[:2]):
        yield f"{file}: the first line (the second after a #!) must say {LICENCE!r}"
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            yield f"{file}:{number}: {len(line)} characters; {LONGEST_LINE} at most"
    for function in function_lengths.find_functions(file.suffix, text):
        if function.lines > LONGEST_FUNCTION:
            yield (
                f"{file}:{function.start}: {function.name} has {function.lines} lines; "
                f"{LONGEST_FUNCTION} at most"
            )
    if file.parts[0] == "examples" and len(lines) > EXAMPLE_LINES:
        yield f"{file}: {len(lines)} lines; an example has {EXAMPLE_LINES} at most"


def _find_sizes(lengths: dict[Path, int]) -> Iterator[str]:
    if not lengths:
        return
    for file, length in lengths.items():
        if length > LARGEST_FILE:
            yield f"{file}: {length} lines; {LARGEST_FILE} at most"
    median = statistics.median(lengths.values())
    if median > MEDIAN_LINES:
        yield f"half of the files have more than {median:.0f} lines; {MEDIAN_LINES} at most"
    if _share_within(lengths.values(), MOST_LINES) < SHARE_WITHIN_MOST:
        large = ", ".join(str(file) for file, length in lengths.items() if length > MOST_LINES)
        yield f"more than a tenth of the files have over {MOST_LINES} lines: {large}"


def _share_within(lengths: Iterable[int], most: int) -> float:
    return statistics.mean(length <= most for length in lengths)


if __name__ == "__main__":
    sys.exit(main())
