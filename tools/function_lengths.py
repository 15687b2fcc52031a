# SPDX-License-Identifier: MIT
"""How long each function is, in Python, C, C++ and Fortran.

Python is parsed, and docstrings do not count. The others are read well enough to count: braces
that a parameter list opens, and Fortran's subroutine and function blocks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Function", "find_functions"]

_NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"\((?:.*?)\)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL
)
_CONTROL = {"catch", "for", "if", "switch", "while"}
_FORTRAN_HEAD = re.compile(
    r"^\s*(?!end\b)(?:[\w()=* ]+\s)?(?:subroutine|function)\s+(\w+)", re.IGNORECASE
)
_FORTRAN_END = re.compile(r"^\s*end\s*(?:subroutine|function)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Function:
    """One function: its name, the line it starts on and how many lines it has."""

    name: str
    start: int
    lines: int


def find_functions(suffix: str, text: str) -> Iterator[Function]:
    """The functions in ``text``, a file that ends in ``suffix``; none for a language not known."""
    if suffix == ".py":
        yield from _find_python(text)
    elif suffix in (".c", ".h", ".cpp"):
        yield from _find_braces(text)
    elif suffix in (".f90", ".F90"):
        yield from _find_fortran(text)


def _find_python(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            end = node.end_lineno or node.lineno
            # A docstring is the page that users read; it says nothing of how much a function does.
            page = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            told = 0 if page is None else (page.end_lineno or page.lineno) - page.lineno + 1
            yield Function(node.name, node.lineno, end - node.lineno + 1 - told)


def _find_braces(text: str) -> Iterator[Function]:
    code = _NOT_CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
    opened: list[tuple[str, int]] = []
    head = ""
    line = 1
    for character in code:
        line += character == "\n"
        if character == "{":
            opened.append((head, line))
        elif character == "}" and opened:
            before, start = opened.pop()
            name = _name(before)
            if ")" in before and not before.rstrip().endswith("=") and name not in _CONTROL:
                yield Function(name, start, line - start + 1)
        head = "" if character in "{};" else head + character


def _name(head: str) -> str:
    found = re.findall(r"([\w:~]+)\s*\(", head)
    return found[0] if found else head.strip()


def _find_fortran(text: str) -> Iterator[Function]:
    opened: list[tuple[str, int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("!")[0]
        head = _FORTRAN_HEAD.match(code)
        if _FORTRAN_END.match(code) and opened:
            name, start = opened.pop()
            yield Function(name, start, number - start + 1)
        elif head:
            opened.append((head[1], number))
