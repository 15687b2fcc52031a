# SPDX-License-Identifier: MIT
"""The pages hold together: links, anchors, included files, the list of pages, README's program.

`make docs` checks much of this too, but needs mkdocs; this needs nothing.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = ROOT / "tools" / "mkdocs.yml"
FOLDERS = [DOCS, ROOT / "examples", ROOT / "bench"]
PAGES = sorted(ROOT.glob("*.md")) + sorted(page for each in FOLDERS for page in each.rglob("*.md"))

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INCLUDE = re.compile(r'--8<-- "([^":]+)')


def read(page):
    return page.read_text(encoding="utf-8")


def without_code(text):
    return re.sub(r"`[^`\n]+`", lambda found: "-" * len(found[0]), FENCE.sub("", text))


def anchors(page):
    """The anchors of the page's headings, as mkdocs and GitHub make them."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", read(page)), re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


def listed_pages():
    lines = read(CONFIG).split("\nnav:\n")[1].splitlines()
    names = [re.fullmatch(r"  - (\S+\.md)", line) for line in lines]
    return [name[1] for name in names if name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_included_files_are_there(page):
    for link in LINK.findall(without_code(read(page))):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(path), f"{link}: no such heading"
    for name in INCLUDE.findall(read(page)):
        assert (ROOT / name).is_file(), f"{name} is included but not there"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_page_links_only_to_pages(page):
    for link in LINK.findall(without_code(read(page))):
        path = (page.parent / link.partition("#")[0]).resolve()
        assert "://" in link or path.is_relative_to(DOCS), f"mkdocs cannot follow {link}"


def test_every_page_is_listed_and_every_listed_page_is_there():
    listed = listed_pages()
    assert len(listed) == len(set(listed))
    assert set(listed) == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_the_pages_is_python(page):
    for _, language, code in FENCE.findall(read(page)):
        if language == "python" and not INCLUDE.search(code):
            ast.parse(code)


def test_the_program_in_the_readme_is_the_example_that_is_run():
    programs = [code for _, language, code in FENCE.findall(read(ROOT / "README.md"))
                if language == "python"]  # fmt: skip
    example = read(ROOT / "examples" / "first_model" / "first_model.py")
    assert len(programs) == 1
    assert example.endswith(f'"""\n\n{programs[0]}')


def test_the_readme_reaches_its_program_within_the_first_screen():
    text = read(ROOT / "README.md")
    assert text[: text.index("import torch\n")].count("\n") <= 20
    assert text[: text.index("\n## ")].count("\n") <= 40


def test_examples_on_the_page_are_all_there():
    text = read(DOCS / "examples.md")
    programs = {path.parent.name for path in (ROOT / "examples").glob("*/*.py")}
    assert {name for name in programs if f"`examples/{name}`" not in text} == set()
