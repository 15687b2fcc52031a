# SPDX-License-Identifier: MIT
"""The rooms: docs/architecture.md names them all, and each imports only those above it there."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torchspan

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "torchspan"

# The doors: what `import torchspan` and `python -m torchspan` open. They are no rooms.
DOORS = {"__init__", "__main__"}
DATA = {"launchers.json", "py.typed"}


def rooms_in_table():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("| room | purpose |")[1].split("\n\n")[0]
    return [
        name.rstrip("/").removesuffix(".py") for name in re.findall(r"^\| `(.+?)`", table, re.M)
    ]


def rooms_in_tree():
    entries = [path for path in SOURCES.iterdir() if path.name not in DATA | {"__pycache__"}]
    folders = {
        path.name
        for path in entries
        if path.is_dir() and any(each.suffix != ".pyc" for each in path.rglob("*.*"))
    }
    return folders | {path.stem for path in entries if path.is_file()} - DOORS


ROOMS = rooms_in_table()


def files_of(room):
    path = SOURCES / room
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def imports_of(path):
    """Every module that the file imports anywhere, absolute, with the names taken from it."""
    package = ["torchspan", *path.relative_to(SOURCES).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def rooms_imported_by(path):
    """The rooms behind the file's imports; a public name stands for the room it lives in."""
    for module, name in imports_of(path):
        parts = module.split(".")
        if parts[0] != "torchspan":
            continue
        if len(parts) > 1:
            yield parts[1]
        elif name in ROOMS:
            yield name
        elif name is not None:
            yield getattr(torchspan, name).__module__.split(".")[1]


def test_the_table_and_the_tree_name_the_same_rooms():
    assert len(ROOMS) == len(set(ROOMS))
    assert set(ROOMS) == rooms_in_tree()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_above_it(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    for path in files_of(room):
        below = set(rooms_imported_by(path)) - allowed
        assert not below, f"{path.name} imports {', '.join(sorted(below))} from below"


def test_only_the_commands_import_rich():
    for path in SOURCES.rglob("*.py"):
        if path.relative_to(SOURCES).parts[0] != "cli":
            assert "rich" not in {module.split(".")[0] for module, _ in imports_of(path)}, path


def test_only_the_accelerator_calls_torch_cuda():
    for path in SOURCES.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        used = any(
            isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.cuda" for node in nodes
        )
        imported = any(
            module.startswith("torch.cuda") or (module, name) == ("torch", "cuda")
            for module, name in imports_of(path)
        )
        assert (used or imported) <= (path.name == "_accelerator.py"), path


def test_importing_torchspan_loads_torch_numpy_and_nothing_else():
    program = """
import json, sys
import numpy, torch
before = set(sys.modules)
import torchspan
new = set(sys.modules) - before
own = {"torchspan", *sys.stdlib_module_names}
heads = [name.split(".")[:1 + name.startswith("torch.")] for name in new]
print(json.dumps(sorted({".".join(head) for head in heads if head[0] not in own})))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = json.loads(done.stdout)
    assert loaded == [], f"import torchspan also loads {loaded}"


def modules():
    """The dotted name of every module of the package."""
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        yield ".".join(["torchspan", *parts]).removesuffix(".__init__")


@pytest.mark.parametrize("name", [name for name in modules() if name != "torchspan.__main__"])
def test_every_public_name_is_sorted_and_has_a_docstring(name):
    module = importlib.import_module(name)
    public = getattr(module, "__all__", [])
    assert list(public) == sorted(public, key=constants_then_classes)
    assert module.__doc__
    things = {each: getattr(module, each) for each in public}
    assert [each for each, thing in things.items() if not is_documented(each, thing)] == []


def constants_then_classes(name):
    return (not name.isupper(), not name[0].isupper(), name)


def is_documented(name, thing):
    """Whether a class or function says what it is, and a class's own methods do as well."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return True
    text = inspect.getdoc(thing) or ""
    written = bool(text) and not text.startswith(f"{name}(")  # what dataclass writes by itself
    if not inspect.isclass(thing):
        return written
    members = (getattr(thing, each) for each in vars(thing) if not each.startswith("_"))
    spoken = (each for each in members if inspect.isroutine(each) or isinstance(each, property))
    return written and all(inspect.getdoc(each) for each in spoken)


def test_a_missing_docstring_is_found():
    class Silent:
        """Says what it is."""

        def speak(self):
            pass

    assert not is_documented("speak", Silent().speak)
    assert not is_documented("Silent", Silent)
    assert is_documented("is_documented", is_documented)
