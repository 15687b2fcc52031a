# SPDX-License-Identifier: MIT
"""``torchspan launch``: start a Python program on several ranks, by torchrun or by mpiexec.

A front and no launcher: what it adds to the two is one way to say how many ranks, threads shared
out among them, and an end without a long stack trace when a rank fails or Ctrl-C is pressed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchspan import _accelerator
from torchspan._devices import usable_cores
from torchspan._errors import ArgumentError, RankError
from torchspan.cli._parser import add_command, positive

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["add_parser", "mpiexec_command", "run", "torchrun_words"]

_LOOPBACK = "127.0.0.1"


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser of ``torchspan``."""
    parser = add_command(
        subparsers,
        "launch",
        summary="start a Python program on several ranks, by torchrun or by mpiexec",
        about="Ends with the exit status of the rank that failed first.",
        example="torchspan launch -n 2 --mpi program.py --its option",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "-n",
        type=positive,
        metavar="RANKS",
        help="how many ranks to start: on this host, or with --mpi in all (default: one for each "
        "accelerator, or 1)",
    )
    parser.add_argument(
        "--mpi", action="store_true", help="start them by mpiexec instead of torchrun"
    )
    parser.add_argument(
        "--nnodes",
        metavar="HOSTS",
        help="torchrun: how many hosts run this same command, such as 2, or 1:4 for elastic",
    )
    parser.add_argument(
        "--rdzv", metavar="HOST:PORT", help="torchrun: where those hosts meet, on one of them"
    )
    parser.add_argument(
        "--options",
        default="",
        metavar="TEXT",
        help="further options of torchrun or mpiexec, in quotes: --options='--hostfile hosts'",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module's name")
    parser.add_argument("program", metavar="PROGRAM", help="a Python file, or with -m a module")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="the program's own arguments"
    )


def run(arguments: argparse.Namespace) -> int:
    """Start the ranks, and wait for them.

    Returns:
        0 when all ranks ended well, else the exit status of the one that failed first; 128 more
        than the signal where it ended by one.

    Raises:
        ArgumentError: The options do not go together.
        RankError: There is no mpiexec, or torchrun's hosts did not meet.
    """
    if arguments.mpi:
        if arguments.nnodes or arguments.rdzv:
            raise ArgumentError(
                "--nnodes and --rdzv are torchrun's, and --mpi was given. Name the hosts to "
                "mpiexec instead: --options='--hostfile FILE' for one."
            )
        return _run_mpiexec(mpiexec_command(arguments))
    if bool(arguments.nnodes) != bool(arguments.rdzv) and arguments.nnodes != "1":
        raise ArgumentError(
            "--nnodes and --rdzv go together: how many hosts, and where they meet, such as "
            "--nnodes 2 --rdzv host1:29400 on each of them."
        )
    return _run_torchrun(torchrun_words(arguments), _count(arguments))


def mpiexec_command(arguments: argparse.Namespace) -> list[str]:
    """The command line for mpiexec.

    Raises:
        RankError: There is no mpiexec.
    """
    mpiexec = shutil.which("mpiexec") or shutil.which("mpirun")
    if mpiexec is None:
        raise RankError(
            "there is no mpiexec on the PATH. Install an MPI (on Debian and Ubuntu: apt-get "
            "install openmpi-bin) or load its module, or leave out --mpi to use torchrun."
        )
    module = ["-m"] if arguments.module else []
    return [
        *(mpiexec, "-n", str(_count(arguments)), *shlex.split(arguments.options)),
        *(sys.executable, *module, arguments.program, *arguments.arguments),
    ]


def torchrun_words(arguments: argparse.Namespace) -> list[str]:
    """The words for torchrun's own parser."""
    words = [f"--nproc-per-node={_count(arguments)}"]
    if arguments.rdzv:
        words += [f"--nnodes={arguments.nnodes}", "--rdzv-backend=c10d"]
        words += [f"--rdzv-endpoint={arguments.rdzv}"]
    else:
        # This host's own name need not lead to it, and nobody else need find it.
        words += ["--standalone", f"--local-addr={_LOOPBACK}"]
    words += shlex.split(arguments.options)
    words += ["-m"] if arguments.module else []
    return [*words, arguments.program, *arguments.arguments]


def _count(arguments: argparse.Namespace) -> int:
    count: int | None = arguments.n
    return count if count is not None else max(1, _accelerator.count())


def _run_mpiexec(command: Sequence[str]) -> int:
    with subprocess.Popen(command) as process:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # Ctrl-C reached mpiexec as well, which ends the ranks.
            process.wait()
            raise
    return status if status >= 0 else 128 - status


def _run_torchrun(words: Sequence[str], count: int) -> int:
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous.api import RendezvousError

    if "OMP_NUM_THREADS" not in os.environ:
        os.environ["OMP_NUM_THREADS"] = str(max(1, usable_cores() // count))
    try:
        torchrun.run(torchrun.parse_args(list(words)))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        status = int(failure.exitcode)
        how = f"exit status {status}" if status >= 0 else f"signal {-status}"
        print(f"torchspan: rank {rank} was the first to fail, with {how}", file=sys.stderr)
        return status if status >= 0 else 128 - status
    except RendezvousError as error:
        raise RankError(
            f"the hosts did not meet, or lost each other: {error} Look at what the other hosts "
            "printed, and whether --rdzv can be reached from all of them."
        ) from error
    except SignalException as error:
        print(f"torchspan: the ranks were ended by signal {int(error.sigval)}", file=sys.stderr)
        return 128 + int(error.sigval)
    return 0
