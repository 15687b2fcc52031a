# SPDX-License-Identifier: MIT
"""How every command's parser looks: one sentence, its arguments, one example line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_command", "add_tune_option", "positive"]


def add_command(
    subparsers: Subparsers, name: str, *, summary: str, about: str = "", example: str
) -> argparse.ArgumentParser:
    """Add the parser of one command.

    Args:
        subparsers: What ``torchspan`` itself parses its commands with.
        name: The command.
        summary: What it does, in one line, for the list of commands.
        about: What else its own ``--help`` says.
        example: A command line that works.

    Returns:
        The parser, to add arguments to.
    """
    return subparsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {about}".rstrip(),
        epilog=f"example:\n  {example}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )


def add_tune_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--no-tune``."""
    parser.add_argument(
        "--no-tune",
        dest="tune",
        action="store_false",
        help="make one build for all batches; by default builds for few rows and for many are "
        "tried too, and kept where they are quicker",
    )


def positive(text: str) -> int:
    """Parse a whole number from 1 up, for ``type=``."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


class _Formatter(argparse.HelpFormatter):
    """Wraps the description as usual, and leaves the example as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return text
        return super()._fill_text(text, width, indent)
