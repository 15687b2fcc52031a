# SPDX-License-Identifier: MIT
"""``torchspan build``: compile the C and Fortran libraries and install them under a prefix.

The build lies in the prefix, one folder a Fortran compiler, so that a second call compiles only
what has changed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from torchspan._errors import ArgumentError, BuildError
from torchspan.cli._parser import add_command, positive
from torchspan.cli._terminal import say, steps

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["PrintCMakeDir", "add_parser", "run"]

NATIVE = Path(__file__).parents[1] / "native"
FRONTS = ("ftorch", "torch_ftn")
# What native/cmake/find_python.cmake says before the reason.
NO_SCRIPTS = "-- torchspan: no models that are scripts: "


class PrintCMakeDir(argparse.Action):
    """``--cmake-dir``: print what ``CMAKE_PREFIX_PATH`` needs to find torchspan and its torch."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and end."""
        print(cmake_path())
        parser.exit()


def cmake_path() -> str:
    """The folder of torchspan's CMake files, and torch's where it does not lie beside torchspan."""
    folders = [NATIVE / "cmake"]
    if NATIVE.parents[1] != _torch_folder().parent:
        folders.append(_torch_folder())
    return ";".join(map(str, folders))


def add_parser(subparsers: Subparsers) -> None:
    """Add ``build`` to the commands."""
    parser = add_command(
        subparsers,
        "build",
        summary="compile the C library and the Fortran module, for programs built with make",
        about="CMake projects need no build: find_package(torchspan) compiles the sources with "
        'them, given -DCMAKE_PREFIX_PATH="$(python -m torchspan --cmake-dir)".',
        example="torchspan build --prefix ~/torchspan --fc gfortran",
    )
    parser.add_argument(
        "--prefix", type=Path, required=True, metavar="DIR", help="where to install"
    )
    parser.add_argument(
        "--fc",
        metavar="COMPILER",
        help="the Fortran compiler (default: FC if set, else gfortran; without either, C alone)",
    )
    parser.add_argument(
        "--libtorch",
        type=Path,
        default=_torch_folder(),
        metavar="DIR",
        help="a LibTorch to build against (default: this Python's torch)",
    )
    parser.add_argument(
        "--with",
        dest="fronts",
        type=_fronts,
        default=[],
        metavar="NAMES",
        help="modules for programs written to other APIs: ftorch, torch_ftn, or both with a comma",
    )
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="compilers to run at once (default: the cores)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Configure, build and install."""
    prefix = arguments.prefix.expanduser().absolute()
    cmake = _find("cmake")
    compiler = _fortran(arguments.fc)
    if arguments.fronts and compiler is None:
        raise ArgumentError(
            f"--with {','.join(arguments.fronts)} needs a Fortran compiler, and there is no "
            "gfortran on the PATH. Install it, or name another with --fc."
        )
    name = Path(compiler).name if compiler else "c"
    build = prefix / "share" / "torchspan" / "build" / name
    configure = [
        cmake, "-S", str(NATIVE), "-B", str(build), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={_find('ninja')}",
        f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib",
        f"-DTORCHSPAN_LIBTORCH={arguments.libtorch.expanduser().absolute()}",
        f"-DTORCHSPAN_PYTHON={sys.executable}",
        f"-DTORCHSPAN_WITH={','.join(arguments.fronts)}",
        f"-DCMAKE_Fortran_COMPILER={compiler or 'NOTFOUND'}",
    ]  # fmt: skip
    compile = [cmake, "--build", str(build)]
    if arguments.jobs:
        compile += ["--parallel", str(arguments.jobs)]
    with steps() as progress:
        progress(f"configuring in {build}")
        said = _call(configure)
        progress("compiling")
        _call(compile)
        progress(f"installing into {prefix}")
        _call([cmake, "--install", str(build)])
    if compiler is None:
        say("there is no Fortran compiler here, so there is no Fortran module. --fc names one.")
    for line in said.splitlines():
        if line.startswith(NO_SCRIPTS):
            say(f"Python scripts will not run as models: {line.removeprefix(NO_SCRIPTS)}")
    print(f"Built with {name if compiler else 'the C compilers alone'}. For make:")
    print(f"  export PKG_CONFIG_PATH={shlex.quote(str(prefix / 'lib' / 'pkgconfig'))}")
    print(f"For CMake: -DCMAKE_PREFIX_PATH={shlex.quote(str(prefix))}")
    return 0


def _torch_folder() -> Path:
    return Path(torch.__file__).parent


def _fortran(named: str | None) -> str | None:
    """The Fortran compiler's path; none where none was asked for and there is none."""
    name = named or os.environ.get("FC") or "gfortran"
    path = shutil.which(name)
    if path is None and (named or os.environ.get("FC")):
        raise ArgumentError(
            f"there is no Fortran compiler {name!r} on the PATH. Install it, or name another with "
            "--fc."
        )
    return path


def _fronts(text: str) -> list[str]:
    """The names of --with, each of which is a folder of native/compat."""
    names = text.split(",")
    for name in names:
        if name not in FRONTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(FRONTS)}")
    return names


def _find(tool: str) -> str:
    """A tool of the [build] extra, beside this Python or on the PATH."""
    beside = Path(sys.executable).parent / tool
    path = str(beside) if beside.exists() else shutil.which(tool)
    if path is None:
        raise BuildError(f"there is no {tool}. Install it: pip install 'torchspan[build]'.")
    return path


def _call(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise BuildError(
            f"this command ended with status {done.returncode}:\n{shlex.join(command)}\n"
            f"{done.stdout.strip()}"
        )
    return done.stdout
