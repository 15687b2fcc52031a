# SPDX-License-Identifier: MIT
"""The Spack package asks for what pyproject.toml asks for. Spack itself is not run."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import torchspan

ROOT = Path(__file__).parents[1]
SPACK = ROOT / "packaging" / "spack"
PACKAGE = SPACK / "packages" / "py-torchspan" / "package.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def package():
    source = PACKAGE.read_text(encoding="utf-8")
    compile(source, str(PACKAGE), "exec")
    (found,) = (each for each in ast.parse(source).body if isinstance(each, ast.ClassDef))
    return found


def directives(package, name):
    """What each call of a directive was given: its first argument, and the others by name."""
    calls = [each.value for each in package.body if isinstance(each, ast.Expr)]
    for call in calls:
        if isinstance(call, ast.Call) and call.func.id == name:
            named = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            yield ast.literal_eval(call.args[0]), named


def spack_range(text):
    """`torch>=2.11,<2.16` as Spack writes it: `2.11:2.15`, both ends included."""
    name, low, above = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<2\.(\d+))?", text).groups()
    return f"py-{name}@{low}:{f'2.{int(above) - 1}' if above else ''}"


def test_the_package_is_one_of_spacks_and_says_what_it_is(package):
    assert package.name == "PyTorchspan"
    assert [base.id for base in package.bases] == ["PythonPackage"]
    assert ast.get_docstring(package)
    assert [given for given, _ in directives(package, "license")] == [PROJECT["license"]]
    assert [given for given, _ in directives(package, "version")] == [torchspan.__version__]
    assert "namespace: torchspan" in (SPACK / "repo.yaml").read_text(encoding="utf-8")


def test_it_depends_on_what_the_project_depends_on(package):
    depends = dict(directives(package, "depends_on"))
    for text in PROJECT["dependencies"]:
        assert "run" in depends[spack_range(text)]["type"]
    for text in PROJECT["optional-dependencies"]["mpi"]:
        assert depends[spack_range(text)]["when"] == "+mpi"
    for text in PROJECT["optional-dependencies"]["build"]:
        assert depends[spack_range(text).removeprefix("py-")]["when"] == "+c"
    low, above = re.fullmatch(r">=([\d.]+),<3\.(\d+)", PROJECT["requires-python"]).groups()
    assert f"python@{low}:3.{int(above) - 1}" in depends


def test_variants_build_the_libraries(package):
    assert {name for name, _ in directives(package, "variant")} == {"c", "fortran", "mpi"}
    (method,) = (each for each in package.body if isinstance(each, ast.FunctionDef))
    assert ast.unparse(method.decorator_list[0]) == "run_after('install', when='+c')"
    options = (ROOT / "src" / "torchspan" / "native" / "cmake" / "find_torch.cmake").read_text()
    assert "TORCHSPAN_LIBTORCH" in options
    assert "TORCHSPAN_LIBTORCH" in ast.unparse(method)
