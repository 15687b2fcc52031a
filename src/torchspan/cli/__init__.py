# SPDX-License-Identifier: MIT
"""The ``torchspan`` command: one file a subcommand, and the only room that knows rich.

A command's module is imported only when the command line is parsed, so that ``import torchspan``
stays free of it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from torchspan._errors import TorchspanError
from torchspan._version import __version__
from torchspan.cli.build import PrintCMakeDir

__all__ = ["main"]

COMMANDS = ("devices", "doctor", "describe", "export", "compile", "run", "launch", "build")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``torchspan`` command.

    Args:
        argv: The words after the command's name; the process's own by default.

    Returns:
        The exit status: 0, 1 for an error that was explained, 130 after Ctrl-C.
    """
    parser = argparse.ArgumentParser(
        prog="torchspan",
        description="Run and train PyTorch models on every device you have.",
        epilog="A first model: 'torchspan export model.py:Net -o net.pt2 --example 1x5' saves the "
        "class Net of model.py, and 'torchspan run net.pt2 x.npy -o y.npy' runs it. A rank is one "
        "of the processes that torchrun, mpiexec or srun starts together. 'torchspan COMMAND "
        "--help' tells more about one command.",
    )
    parser.add_argument("--version", action="version", version=f"torchspan {__version__}")
    parser.add_argument(
        "--cmake-dir",
        action=PrintCMakeDir,
        nargs=0,
        help="print what CMAKE_PREFIX_PATH needs for find_package(torchspan), and exit",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"torchspan.cli.{name}").add_parser(subparsers)
    arguments = parser.parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except TorchspanError as error:
        print(f"torchspan: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # A reader such as `head` went away; keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"torchspan: error: {where}{error.strerror or error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("torchspan: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    return status
