# SPDX-License-Identifier: MIT
"""What ``torchspan doctor`` knows: plain values, so that every check can be tested with given ones.

``_survey`` finds them on this machine, ``_checks`` judges them, ``doctor`` prints both.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchspan.cli.devices import DeviceFacts

__all__ = ["Facts", "FolderFacts", "MpiFacts", "RankFacts", "Tool"]


@dataclass(frozen=True)
class RankFacts:
    """One process: who it is, and what it may use.

    Attributes:
        rank: Its number among all.
        size: How many there are.
        local_rank: Its number on its machine.
        launcher: Who started it; ``"none"`` when it was started alone.
        host: Its machine.
        host_cores: How many cores that machine has.
        device: Its ``rank`` device.
        physical: What tells that GPU from the others of its machine; None on a CPU.
        cores: The cores in its affinity mask.
        threads: How many threads torch would use.
        omp_num_threads: The variable ``OMP_NUM_THREADS``, where it is set.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    launcher: str = "none"
    host: str = "localhost"
    host_cores: int = 1
    device: str = "cpu:0"
    physical: str | None = None
    cores: tuple[int, ...] = (0,)
    threads: int = 1
    omp_num_threads: str | None = None


@dataclass(frozen=True)
class Tool:
    """A program that torchspan or its native build may call.

    Attributes:
        role: What it is for: ``"C++ compiler"``.
        path: Where it is; None where there is none.
        version: The first line of what it says of itself.
    """

    role: str
    path: str | None = None
    version: str = ""


@dataclass(frozen=True)
class MpiFacts:
    """The two sides of MPI: what starts processes, and what mpi4py was built with.

    Attributes:
        launcher: What ``mpiexec --version`` says; None where there is no mpiexec.
        library: What the MPI library of mpi4py says; None where there is no mpi4py.
        trouble: Why mpi4py is there but could not be asked.
    """

    launcher: str | None = None
    library: str | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class FolderFacts:
    """A folder that torchspan writes to.

    Attributes:
        path: Where it is.
        free: Bytes that may still be written there.
        entries: How many files may still be made there; None where there is no such limit.
        executable: Whether code there may be run.
        trouble: Why it cannot be used.
    """

    path: str = ""
    free: int = 0
    entries: int | None = None
    executable: bool = True
    trouble: str | None = None


@dataclass(frozen=True)
class Facts:
    """Everything that ``torchspan doctor`` looks at.

    Attributes:
        python: Python's version.
        torchspan: torchspan's version.
        torch: torch's version.
        torch_range: The versions of torch that torchspan supports: ``"<2.16,>=2.11"``.
        torch_target: What this torch was built for: ``"CPU"``, ``"CUDA 13.0"``, ``"ROCm 6.4"``.
        devices: The devices of the main rank.
        drivers: Files by which the operating system offers GPUs.
        pretended: Which devices ``TORCHSPAN_PRETEND_*`` puts there.
        ranks: Every process, by rank.
        tools: The programs that were looked for.
        mpi: Both sides of MPI.
        openmp: The OpenMP runtimes that torch and numpy loaded.
        system_openmp: The one that a compiler here would link to; None where there is none.
        cache: The folder of unpacked builds.
        temporary: The folder for temporary files.
        troubles: Errors that were met while looking.
    """

    python: str = ""
    torchspan: str = ""
    torch: str = ""
    torch_range: str = ""
    torch_target: str = "CPU"
    devices: tuple[DeviceFacts, ...] = ()
    drivers: tuple[str, ...] = ()
    pretended: tuple[str, ...] = ()
    ranks: tuple[RankFacts, ...] = (RankFacts(),)
    tools: tuple[Tool, ...] = ()
    mpi: MpiFacts = MpiFacts()
    openmp: tuple[str, ...] = ()
    system_openmp: str | None = None
    cache: FolderFacts = FolderFacts()
    temporary: FolderFacts = FolderFacts()
    troubles: tuple[str, ...] = ()
