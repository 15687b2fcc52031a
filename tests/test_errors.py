# SPDX-License-Identifier: MIT
import builtins
import inspect
import pickle
import re

import pytest

import torchspan
from torchspan import TorchspanError, _errors

LINE = re.compile(
    r"^(?P<indent>[ │├└─]*)(?P<name>\w+)(?: +code (?P<code>\d+))?(?: +\((?P<also>.+)\))?$"
)
CLASSES = [
    value
    for value in vars(_errors).values()
    if inspect.isclass(value) and issubclass(value, TorchspanError)
]


def drawn_tree():
    """What the docstring draws: name -> (parent, own code or None, builtins)."""
    block = inspect.cleandoc(_errors.__doc__).split("::\n", 1)[1].split("\n\nA leaf")[0]
    drawn, path = {}, []
    for line in filter(None, map(str.rstrip, block.splitlines())):
        match = LINE.match(line.removeprefix("    "))
        assert match, f"the tree has a line that does not read: {line!r}"
        depth = len(match["indent"]) // 4
        path[depth:] = [match["name"]]
        also = tuple(match["also"].split(", ")) if match["also"] else ()
        code = int(match["code"]) if match["code"] else None
        drawn[match["name"]] = (path[depth - 1] if depth else None, code, also)
    return drawn


def real_tree():
    real = {}
    for each in CLASSES:
        parents = [base.__name__ for base in each.__bases__ if issubclass(base, TorchspanError)]
        also = tuple(base.__name__ for base in each.__bases__ if hasattr(builtins, base.__name__))
        root = each is TorchspanError
        real[each.__name__] = (
            None if root else parents[0],
            vars(each).get("code"),
            () if root else also,
        )
    return real


def test_the_tree_in_the_docstring_is_the_real_tree():
    assert drawn_tree() == real_tree()


def test_codes_are_unique_and_without_gaps():
    codes = [vars(each)["code"] for each in CLASSES if "code" in vars(each)]
    assert sorted(codes) == list(range(1, len(codes) + 1))


def test_a_class_without_a_code_of_its_own_has_its_parents():
    assert _errors.ModelFileNotFoundError.code == _errors.ModelFileError.code


@pytest.mark.parametrize("each", CLASSES, ids=lambda each: each.__name__)
def test_every_class_is_public_documented_and_carries_its_message(each):
    assert each.__name__ in _errors.__all__
    assert getattr(torchspan, each.__name__) is each
    assert inspect.getdoc(each).endswith(".")
    assert str(pickle.loads(pickle.dumps(each("what was given")))) == "what was given"


def test_every_class_but_the_root_is_caught_by_a_builtin():
    for each in CLASSES:
        if each is not TorchspanError:
            assert any(issubclass(each, one) for one in (ValueError, RuntimeError, MemoryError))
