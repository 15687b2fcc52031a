# SPDX-License-Identifier: MIT
"""``torchspan doctor``: what is installed, which rank computes where, and what will go wrong."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from torchspan._errors import TorchspanError
from torchspan._placement import Placement, find_placement
from torchspan._world import join
from torchspan.cli._checks import Finding, find_all
from torchspan.cli._facts import Facts, RankFacts
from torchspan.cli._parser import add_command
from torchspan.cli._survey import find_facts, find_rank_facts
from torchspan.cli._terminal import format_bytes, print_json, print_table
from torchspan.cli.devices import HEADS, device_rows

if TYPE_CHECKING:
    from torchspan.cli._parser import Subparsers

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Subparsers) -> None:
    """Add ``doctor`` to the commands."""
    parser = add_command(
        subparsers,
        "doctor",
        summary="look for what will not work, or will work badly, on this machine",
        about="An error is something that does not work, a warning something that works badly, a "
        "note something optional that is not there; each says what to do. The exit status is 1 "
        "where there is an error. Under torchrun, mpiexec or srun the main rank prints one report "
        "for all ranks.",
        example="mpiexec -n 4 torchspan doctor",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what was found, on the main rank."""
    troubles: list[str] = []
    try:
        placement = find_placement()
    except TorchspanError as error:
        troubles.append(str(error))
        placement = Placement()
    everyone = _gather(placement, _find_own(placement, troubles), troubles)
    if everyone is None:
        return 0
    facts = find_facts(
        [own for own, _ in everyone], [trouble for _, met in everyone for trouble in met]
    )
    findings = find_all(facts)
    if arguments.json:
        print_json({**asdict(facts), "findings": [asdict(each) for each in findings]})
    else:
        print_report(facts, findings)
    return int(any(each.level == "error" for each in findings))


def print_report(facts: Facts, findings: Sequence[Finding]) -> None:
    """Print facts and findings as tables."""
    print_table("Versions", ("what", "version"), _version_rows(facts))
    print_table("\nDevices", HEADS, device_rows(facts.devices))
    heads = ("rank", "host", "launcher", "device", "cores", "threads")
    print_table("\nRanks", heads, [_rank_row(each) for each in facts.ranks])
    rows = [(each.role, each.version or "not found", each.path or "") for each in facts.tools]
    print_table("\nTools", ("for", "version", "path"), rows)
    folders = [("cache", facts.cache), ("temporary", facts.temporary)]
    print_table(
        "\nFolders",
        ("for", "free", "path"),
        [(what, format_bytes(each.free), each.path) for what, each in folders],
    )
    print()
    for each in findings:
        print(f"{each.level}: {each.text}")
    if not any(each.level != "note" for each in findings):
        print("Nothing is wrong.")


def format_cores(cores: Sequence[int]) -> str:
    """Core numbers as people write them: ``"0-3,8"``."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _gather(
    placement: Placement, own: RankFacts, troubles: list[str]
) -> list[tuple[RankFacts, list[str]]] | None:
    """What every rank found, on the main rank; None on the others."""
    if placement.size > 1:
        try:
            with join("cpu") as world:
                return world.gather((own, troubles))
        except TorchspanError as error:
            if placement.rank != 0:
                raise
            # What keeps the ranks apart is the very thing to report.
            troubles.append(f"the ranks cannot join: {error}")
    return [(own, troubles)]


def _find_own(placement: Placement, troubles: list[str]) -> RankFacts:
    try:
        return find_rank_facts(placement)
    except TorchspanError as error:
        troubles.append(str(error))
        return RankFacts(placement.rank, placement.size, placement.local_rank)


def _version_rows(facts: Facts) -> list[tuple[str, str]]:
    openmp = ", ".join(path.rsplit("/", 1)[-1] for path in facts.openmp)
    return [
        ("torchspan", facts.torchspan),
        ("torch", f"{facts.torch}, built for {facts.torch_target}"),
        ("Python", facts.python),
        ("OpenMP", openmp or "none loaded"),
        ("mpiexec", (facts.mpi.launcher or "not found").partition("\n")[0]),
        ("mpi4py", facts.mpi.library or "not found"),
    ]


def _rank_row(each: RankFacts) -> tuple[str, ...]:
    return (
        f"{each.rank} of {each.size}",
        each.host,
        "none" if each.launcher == "none" else each.launcher,
        each.device,
        f"{format_cores(each.cores)} of {each.host_cores}",
        str(each.threads),
    )
