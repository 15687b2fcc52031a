# SPDX-License-Identifier: MIT
"""What the Fortran tests share: the library, installed once a run by `torchspan build`; programs
compiled against it; models that tell one mistake from another."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchspan

SOURCES = Path(__file__).parent / "fortran"
KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI"))}


def call(command, status=0, cwd=None, **environ):
    """Run a command and return what it did; its status must be this one."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**KEPT, **environ},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


# flang 19 cannot compile procedures with dimension(..) arguments: its run takes array() alone.
COMPILERS = {"gfortran": "gfortran", "flang-22": "flang-22", "flang-new-19": "flang-19"}
ARRAY_FORM = ("flang-new-19",)
FRONTS = "ftorch,torch_ftn"


def first_arguments(text, count):
    """The first arguments of a call, from behind its opening bracket, and what follows them."""
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if (letter == "," and depth == 0) or depth < 0:
            found.append(text[begin:place].strip())
            begin = place + 1
            if len(found) == count:
                return found, text[place:]
    raise ValueError(text)


# Procedures that take arrays, and which of their arguments are arrays.
TAKING = {"%run(": (0, 1), "%run_on(": (1, 2), "%submit(": (0, 1), "%train(": (0, 1),
          "call register(": (0,), "call unregister(": (0,)}  # fmt: skip


def in_array_form(source):
    """The same program with the arrays of every procedure given as `[array(x)]`."""
    if re.search(r"use torchspan, only: (?!.*\barray\b)", source):
        source = source.replace("use torchspan, only: ", "use torchspan, only: array, ")
    begin, *calls = re.split("(" + "|".join(map(re.escape, TAKING)) + ")", source)
    for name, each in zip(calls[::2], calls[1::2], strict=True):
        places = TAKING[name]
        arguments, rest = first_arguments(each, places[-1] + 1)
        for index in places:
            word = arguments[index]
            if not word.startswith("["):
                arguments[index] = f"[{word}]" if word.startswith("array(") else f"[array({word})]"
        begin += name + ", ".join(arguments) + rest
    return begin


class Installed:
    """A prefix that `torchspan build` filled, and the programs compiled against it."""

    def __init__(self, prefix, folder, compiler):
        self.prefix = prefix
        self.folder = folder
        self.compiler = compiler
        self.array_form = compiler in ARRAY_FORM

    def source(self, name):
        """The path of a program's source, in the form that this compiler takes."""
        path = SOURCES / f"{name}.f90"
        if not self.array_form:
            return path
        copy = self.folder / path.name
        copy.write_text(in_array_form(path.read_text(encoding="utf-8")), encoding="utf-8")
        return copy

    def compile(self, name, *options):
        """Compile a program of tests/native/fortran and return its path."""
        target = self.folder / name
        if not target.exists():
            pkg = {"PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
            words = call(["pkg-config", "--cflags", "--libs", "torchspan-fortran"], **pkg).stdout
            sources = [SOURCES / "expectation.f90", self.source(name)]
            call([self.compiler, "-std=f2018", "-O2", *options, *sources, "-o", target,
                  *words.split()], cwd=self.folder)  # fmt: skip
        return target

    def run(self, name, *arguments, status=0, options=(), **environ):
        """Compile and run a program."""
        return call([self.compile(name, *options), *arguments], status=status, **environ)


def install(run_folder, compiler="gfortran"):
    """Build the library and install it, once for all processes of this run."""
    for tool, package in ((compiler, COMPILERS[compiler]), ("pkg-config", "pkg-config")):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: sudo apt-get install {package}")
    prefix = run_folder / f"installed-{compiler}"
    with (run_folder / f"installed-{compiler}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not (prefix / "lib" / "pkgconfig" / "torchspan-fortran.pc").exists():
            call(build_command(prefix, compiler))
    return prefix


def build_command(prefix, compiler):
    """`torchspan build`; flang 19 builds against a LibTorch that is not in Python's packages."""
    command = [sys.executable, "-m", "torchspan", "build", "--prefix", prefix, "--fc", compiler]
    if compiler not in ARRAY_FORM:
        command += ["--with", FRONTS]
    else:
        libtorch = prefix.parent / f"libtorch-{compiler}"
        libtorch.mkdir(exist_ok=True)
        for part in ("include", "lib"):
            if not (libtorch / part).exists():
                (libtorch / part).symlink_to(Path(torch.__file__).parent / part)
        command += ["--libtorch", libtorch]
    return [*command, "--jobs", "2"]


class Twice(torch.nn.Module):
    """Doubles numbers and negates truths, of every dtype and shape."""

    def forward(self, x):
        if x.dtype == torch.bool:
            return x.logical_not()
        return x + x


class Order(torch.nn.Module):
    """Adds 10 a column and 100 a row to (batch, row, column)."""

    def forward(self, x):
        columns = torch.arange(x.shape[2], dtype=x.dtype)
        rows = torch.arange(x.shape[1], dtype=x.dtype)
        return x + 10 * columns + 100 * rows[:, None]


class PlusMinus(torch.nn.Module):
    """Two inputs, two outputs."""

    def forward(self, a, b):
        return a + b, a - b


class Raising(torch.nn.Module):
    """Fails while it runs."""

    def forward(self, x):
        if x.numel() > 0:
            raise ValueError("failed on purpose")
        return x


class Hungry(torch.nn.Module):
    """Wants more memory than any machine has."""

    def forward(self, x):
        return x + torch.empty(1 << 50, dtype=x.dtype)[0]


class SimpleNet(torch.nn.Module):
    """Doubles five numbers."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 5, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(2 * torch.eye(5))

    def forward(self, x):
        return self.linear(x)


def write_models(folder):
    """Write every model; those by torch alone say nothing of their inputs."""
    folder.mkdir(exist_ok=True)
    scripts = {"twice": Twice(), "raising": Raising(), "order": Order(), "hungry": Hungry()}
    for name, module in scripts.items():
        torch.jit.script(module).save(folder / f"{name}.pt")
    for form in ("pt", "pt2"):
        torchspan.save(SimpleNet(), folder / f"simplenet.{form}", torch.ones(2, 5), tuned=False)
    pair = (torch.ones(4, 3), torch.ones(4, 3))
    torchspan.save(PlusMinus(), folder / "plus_minus.pt", pair)
    (folder / "simplenet.py").write_text("def forward(x):\n    return 2 * x\n", encoding="utf-8")
    whole = (folder / "simplenet.pt").read_bytes()
    (folder / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    return folder
