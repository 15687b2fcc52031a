# SPDX-License-Identifier: MIT
"""tools/style.py finds each thing that it claims to find, and this repository has none of them."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LICENCE = "# SPDX-License-Identifier: MIT\n"


@pytest.fixture(scope="module")
def style():
    sys.path.insert(0, str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("style", ROOT / "tools" / "style.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(ROOT / "tools"))
    return module


@pytest.fixture
def find(style, tmp_path):
    """Write files into an empty folder and return the problems found in them."""

    def find(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return list(style.find_problems(tmp_path, [Path(name) for name in files]))

    return find


def test_a_good_file_has_no_problem(find):
    assert find({"src/noun.py": LICENCE + "x = 1\n", "tools/run": "#!/bin/sh\n" + LICENCE}) == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("src/utils.py", LICENCE, "the name says nothing"),
        ("src/common/x.py", LICENCE, "the name says nothing"),
        ("src/noun.py", "x = 1\n", "the first line"),
        ("src/noun.py", "\n\n" + LICENCE, "the first line"),
        ("tools/run", "#!/bin/sh\n", "the first line"),
        ("CMakeLists.txt", "project(x)\n", "the first line"),
        ("src/noun.py", LICENCE + "x = '" + "y" * 96 + "'\n", "src/noun.py:2: 102 characters"),
        ("src/noun.py", LICENCE * 801, "801 lines; 800 at most"),
        ("examples/task/task.py", LICENCE * 61, "61 lines; an example has 60"),
        ("docs/page.md", "see /" + "home/me/x\n", "docs/page.md:1"),
        ("pyproject.toml", 'cache = "/' + 'root/.cache"\n', "of one machine"),
        (
            "Makefile",
            LICENCE + "\tpip install --find" + "-links x\n",
            "of one machine or one index",
        ),
    ],
)
def test_each_rule_is_found(find, name, text, words):
    problems = find({name: text})
    assert any(words in problem for problem in problems), problems


def test_too_many_entries_in_the_root(find):
    files = {f"file{number}.md": "\n" for number in range(16)}
    assert find(files) == []
    assert "the root has 17 entries" in find({**files, "one_more.md": "\n"})[0]


def test_half_of_the_files_are_small_and_nine_tenths_not_large(find):
    small = {f"src/s{number}.py": LICENCE * 10 for number in range(9)}
    assert find({**small, "src/large.py": LICENCE * 401}) == []
    found = find({**small, "src/large.py": LICENCE * 401, "src/large2.py": LICENCE * 401})
    assert found == [
        "more than a tenth of the files have over 400 lines: src/large.py, src/large2.py"
    ]
    found = find({"src/a.py": LICENCE * 151, "src/b.py": LICENCE * 151, "src/c.py": LICENCE})
    assert found == ["half of the files have more than 151 lines; 150 at most"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.py", "def long():\n" + "    x = 1\n" * 60),
        ("x.py", "class A:\n    async def long(self):\n" + "        x = 1\n" * 60),
        ("x.c", 'int long(const char *s)\n{ s = "}";\n' + "  x(1);\n" * 59 + "}\n"),
        (
            "x.cpp",
            "namespace a {\nauto long(int x) -> int {\n" + "  /* } */ x++;\n" * 59 + "}\n}\n",
        ),
        ("x.f90", "subroutine long(x)\n" + "  x = x + 1\n" * 59 + "end subroutine long\n"),
        ("x.f90", "pure integer function long(x)\n" + "  x = 1\n" * 59 + "end function\n"),
    ],
)
def test_a_function_of_61_lines_is_found_and_one_of_60_is_not(style, name, text):
    def lengths(text):
        suffix = Path(name).suffix
        return {f.name: f.lines for f in style.function_lengths.find_functions(suffix, text)}

    assert lengths(text) == {"long": 61}
    shorter = text.splitlines(keepends=True)
    del shorter[3]
    assert lengths("".join(shorter)) == {"long": 60}


def test_a_docstring_does_not_count_but_other_strings_do(style):
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    x = """\n"""\n'
    (found,) = style.function_lengths.find_functions(".py", text)
    assert (found.name, found.lines) == ("f", 3)


def test_tables_and_namespaces_are_no_functions(style):
    text = "namespace a {\nstatic const int table[size()] = {\n" + " 1,\n" * 80 + "};\n}\n"
    assert list(style.function_lengths.find_functions(".cpp", text)) == []


def test_this_repository(style):
    files = style.list_files(ROOT)
    assert Path("Makefile") in files
    assert not any(file.parts[0] == ".venv" for file in files)
    assert list(style.find_problems(ROOT, files)) == []
