# SPDX-License-Identifier: MIT
"""What ``torchspan doctor`` warns of: one small function a trap, each from facts to findings.

An error means that something will not work, a warning that it will work badly, a note that
something optional is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from torchspan.cli._facts import Facts, FolderFacts, RankFacts
from torchspan.cli._terminal import format_bytes

__all__ = ["CHECKS", "Finding", "find_all", "mpi_family"]

GIB = 1024**3
FULL = 16 * 1024**2


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        level: ``"error"``, ``"warning"`` or ``"note"``.
        text: What was found, what it does, and what to do.
    """

    level: str
    text: str


def find_all(facts: Facts) -> list[Finding]:
    """Every finding, errors first."""
    found = [finding for check in CHECKS for finding in check(facts)]
    return sorted(found, key=lambda finding: ("error", "warning", "note").index(finding.level))


def check_troubles(facts: Facts) -> Iterator[Finding]:
    """Errors that were met while looking."""
    for text in facts.troubles:
        yield Finding("error", text)
    for device in facts.devices:
        if device.trouble is not None:
            yield Finding(
                "error",
                f"{device.device} does not answer: {device.trouble}. Look at it with its vendor's "
                "tool (nvidia-smi, rocm-smi, xpu-smi), or hide it.",
            )


def check_torch(facts: Facts) -> Iterator[Finding]:
    """A torch outside the range that torchspan supports."""
    own = _numbers(facts.torch)
    for sign, version in re.findall(r"(>=|<)([0-9.]+)", facts.torch_range):
        if (own < _numbers(version)) == (sign == ">="):
            yield Finding(
                "warning",
                f"torch {facts.torch} is outside the supported versions {facts.torch_range}. "
                f"Install one of them: pip install 'torch{facts.torch_range}'.",
            )
            return


def check_drivers(facts: Facts) -> Iterator[Finding]:
    """GPUs that the operating system offers and torch does not see."""
    real = [each for each in facts.devices if each.kind != "cpu" and not each.pretended]
    if facts.drivers and not real:
        yield Finding(
            "warning",
            f"this machine has GPUs ({', '.join(facts.drivers)}), but torch, built for "
            f"{facts.torch_target}, sees none. Install a torch built for them, or look at the "
            "driver and at CUDA_VISIBLE_DEVICES and its siblings.",
        )


def check_pretended(facts: Facts) -> Iterator[Finding]:
    """Devices that are not what they are called."""
    if facts.pretended:
        yield Finding(
            "warning",
            f"{' and '.join(facts.pretended)} pretended: times measured on them say nothing about "
            "real ones. Unset TORCHSPAN_PRETEND_* for real work.",
        )


def check_binding(facts: Facts) -> Iterator[Finding]:
    """Ranks bound to one core each on a machine with cores to spare."""
    for host, ranks in _hosts(facts):
        bound = [each for each in ranks if len(each.cores) == 1]
        if bound and ranks[0].host_cores > len(ranks):
            yield Finding(
                "warning",
                f"on {host} {_ranks(bound)} may use one core of {ranks[0].host_cores}, so each "
                "runs one thread: the launcher binds ranks to cores. Give each more: mpiexec "
                "--bind-to none (Open MPI), mpiexec -bind-to none (MPICH), srun "
                "--cpus-per-task=N.",
            )


def check_threads(facts: Facts) -> Iterator[Finding]:
    """Ranks with one thread although they have more cores."""
    for host, ranks in _hosts(facts):
        cores = {core for each in ranks for core in each.cores}
        idle = [each for each in ranks if each.threads == 1 and len(each.cores) > 1]
        if not idle or sum(each.threads for each in ranks) >= len(cores):
            continue
        said = sorted({each.omp_num_threads for each in idle if each.omp_num_threads})
        reason = f" because OMP_NUM_THREADS={', '.join(said)}" if said else ""
        yield Finding(
            "warning",
            f"on {host} {_ranks(idle)} would use one thread of {len(idle[0].cores)} cores{reason}. "
            "torchrun sets OMP_NUM_THREADS=1 where it is unset: set it to "
            f"{len(cores) // len(ranks)}, the cores of a rank.",
        )


def check_crowding(facts: Facts) -> Iterator[Finding]:
    """More threads than cores."""
    for host, ranks in _hosts(facts):
        cores = {core for each in ranks for core in each.cores}
        threads = sum(each.threads for each in ranks)
        if threads > len(cores):
            each = len(cores) // len(ranks)
            advice = f", or set OMP_NUM_THREADS={each}" if each else ""
            yield Finding(
                "warning",
                f"on {host} {_ranks(ranks)} would use {threads} threads on {len(cores)} "
                f"core{'s' * (len(cores) > 1)} and slow each other down. Start fewer ranks, bind "
                f"each to cores of its own{advice}.",
            )


def check_sharing(facts: Facts) -> Iterator[Finding]:
    """More ranks than GPUs."""
    for host, ranks in _hosts(facts):
        users = [each for each in ranks if each.physical is not None]
        gpus = {each.physical for each in users}
        if len(users) > len(gpus):
            yield Finding(
                "warning",
                f"on {host} {_ranks(users)} share {len(gpus)} GPU{'s' * (len(gpus) > 1)}: they "
                "take turns. Start as many ranks as there are GPUs, or one that opens them all.",
            )


def check_tools(facts: Facts) -> Iterator[Finding]:
    """Compilers and build tools that are not there."""
    uses = {
        "C++ compiler": ("warning", "models cannot be compiled for the CPU here. Install g++"),
        "Fortran compiler": ("note", "Fortran programs cannot be built here. Install gfortran"),
        "CMake": ("note", "native programs cannot be built here. Install torchspan[build]"),
        "Ninja": ("note", "native builds fall back to make. Install torchspan[build]"),
        "mpiexec": ("note", "programs cannot be started under MPI here. Install an MPI"),
    }
    for tool in facts.tools:
        if tool.path is None:
            level, use = uses[tool.role]
            yield Finding(level, f"there is no {tool.role}: {use}, if you need it.")


def check_mpi(facts: Facts) -> Iterator[Finding]:
    """An mpiexec of one MPI and an mpi4py of another."""
    mpi = facts.mpi
    if mpi.trouble is not None:
        yield Finding("warning", f"mpi4py is installed but does not load: {mpi.trouble}")
    if mpi.launcher is None or mpi.library is None:
        return
    launcher, library = mpi_family(mpi.launcher), mpi_family(mpi.library)
    if None not in (launcher, library) and launcher != library:
        yield Finding(
            "warning",
            f"mpiexec belongs to {launcher} but mpi4py was built with {library}: every process "
            "would be rank 0 of 1. Put the right mpiexec first on the PATH, or build mpi4py "
            "again: pip install --no-binary=mpi4py --force-reinstall mpi4py.",
        )


def check_openmp(facts: Facts) -> Iterator[Finding]:
    """Two OpenMP runtimes in one process, or waiting to be."""
    names = sorted({Path(path).name for path in facts.openmp})
    if len(facts.openmp) > 1:
        yield Finding(
            "warning",
            f"torch and numpy loaded {len(facts.openmp)} OpenMP runtimes ({', '.join(names)}): "
            "each makes threads of its own. Take torch and numpy from the same source, both from "
            "PyPI or both from conda.",
        )
    gnu = [name for name in names if name.startswith("libgomp")]
    if gnu and facts.system_openmp is not None and facts.system_openmp not in gnu:
        yield Finding(
            "note",
            f"torch brings its own OpenMP runtime, {gnu[0]}; a program compiled with -fopenmp here "
            f"brings {facts.system_openmp} as well, and each makes threads of its own. Leave the "
            "program's parallel regions before calling a model.",
        )


def check_folders(facts: Facts) -> Iterator[Finding]:
    """Folders that are full, may not be written, or may not hold code."""
    if facts.cache.trouble is not None:
        yield Finding("error", facts.cache.trouble)
    elif not facts.cache.executable:
        yield Finding(
            "error",
            f"the cache folder {facts.cache.path} is mounted noexec, so builds unpacked there "
            "cannot be loaded. Name another one in TORCHSPAN_CACHE.",
        )
    if facts.cache.trouble is None:
        yield from _check_space("cache", facts.cache, "TORCHSPAN_CACHE")
    if facts.temporary.trouble is not None:
        yield Finding("error", facts.temporary.trouble)
    else:
        yield from _check_space("temporary", facts.temporary, "TMPDIR")


CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    check_troubles,
    check_torch,
    check_drivers,
    check_pretended,
    check_binding,
    check_threads,
    check_crowding,
    check_sharing,
    check_tools,
    check_mpi,
    check_openmp,
    check_folders,
)


def mpi_family(text: str) -> str | None:
    """Which MPI a version text speaks of; those whose processes find each other are one family."""
    lower = text.lower()
    if "open mpi" in lower or "openrte" in lower or "open-mpi" in lower:
        return "Open MPI"
    if any(name in lower for name in ("mpich", "hydra", "intel(r) mpi", "mvapich", "pals")):
        return "the MPICH family"
    return None


def _check_space(what: str, folder: FolderFacts, variable: str) -> Iterator[Finding]:
    if folder.free < FULL or (folder.entries is not None and folder.entries < 16):
        yield Finding(
            "error",
            f"the {what} folder {folder.path} is full. Free some space, or name another one in "
            f"{variable}.",
        )
    elif folder.free < GIB:
        yield Finding(
            "warning",
            f"the {what} folder {folder.path} has {format_bytes(folder.free)} left; compiling and "
            f"unpacking models may fail. Free some space, or name another one in {variable}.",
        )


def _hosts(facts: Facts) -> Iterator[tuple[str, list[RankFacts]]]:
    ordered = sorted(facts.ranks, key=lambda each: (each.host, each.rank))
    for host, ranks in groupby(ordered, key=lambda each: each.host):
        yield host, list(ranks)


def _ranks(ranks: list[RankFacts]) -> str:
    if len(ranks) == 1:
        return "this process" if ranks[0].size == 1 else f"rank {ranks[0].rank}"
    if len(ranks) > 4:
        return f"{len(ranks)} ranks"
    return f"ranks {', '.join(str(each.rank) for each in ranks)}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:2])
