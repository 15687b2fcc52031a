# SPDX-License-Identifier: MIT
"""Find the facts that ``torchspan doctor`` judges, on this machine and in this process.

Programs are asked in processes of their own, without the launcher's variables: an ``mpiexec`` that
finds them believes itself to be a rank, and mpi4py may end the process that imports it.
"""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from torchspan._devices import (
    Device,
    parse_devices,
    pretended,
    usable_cores,
    visible_accelerators,
)
from torchspan._errors import TorchspanError
from torchspan._model_file import cache_folder
from torchspan._placement import Placement
from torchspan._version import __version__
from torchspan.cli._facts import Facts, FolderFacts, MpiFacts, RankFacts, Tool
from torchspan.cli.devices import DeviceFacts, look_at

__all__ = ["find_facts", "find_rank_facts"]

# For each role the variable that names the program, then what it is usually called.
_TOOLS = (
    ("C++ compiler", "CXX", ("g++", "clang++", "c++", "icpx")),
    ("Fortran compiler", "FC", ("gfortran", "flang", "flang-new", "ifx", "nvfortran")),
    ("CMake", None, ("cmake",)),
    ("Ninja", None, ("ninja",)),
    ("mpiexec", None, ("mpiexec", "mpirun")),
)
_LAUNCHER_PREFIXES = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "MV2_", "MPI_LOCAL", "PALS_", "HYDRA_")
_ASK_MPI4PY = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version())
"""


def find_rank_facts(placement: Placement) -> RankFacts:
    """What this process may use.

    Args:
        placement: Who it is.
    """
    device = parse_devices("rank", placement)[0]
    has_mask = hasattr(os, "sched_getaffinity")
    return RankFacts(
        rank=placement.rank,
        size=placement.size,
        local_rank=placement.local_rank,
        launcher=placement.launcher,
        host=socket.gethostname(),
        host_cores=os.cpu_count() or usable_cores(),
        device=str(device),
        physical=_physical(device),
        cores=tuple(sorted(os.sched_getaffinity(0)) if has_mask else range(usable_cores())),
        threads=torch.get_num_threads(),
        omp_num_threads=os.environ.get("OMP_NUM_THREADS"),
    )


def find_facts(ranks: Sequence[RankFacts], troubles: Sequence[str]) -> Facts:
    """Everything that the doctor looks at.

    Args:
        ranks: What each process said of itself.
        troubles: Errors that were met already.
    """
    troubles = [*troubles]
    devices: tuple[DeviceFacts, ...] = ()
    pretend: tuple[str, ...] = ()
    try:
        pretend = tuple(f"{number} {kind}" for kind, number in pretended().items())
        devices = tuple(look_at([*visible_accelerators(), *parse_devices("cpu")]))
    except TorchspanError as error:
        troubles.append(str(error))
    tools = tuple(_find_tool(role, variable, names) for role, variable, names in _TOOLS)
    return Facts(
        python=platform.python_version(),
        torchspan=__version__,
        torch=torch.__version__,
        torch_range=_torch_range(),
        torch_target=_torch_target(),
        devices=devices,
        drivers=_drivers(),
        pretended=pretend,
        ranks=tuple(sorted(ranks, key=lambda each: each.rank)),
        tools=tools,
        mpi=_find_mpi(tools[-1]),
        openmp=_loaded_openmp(),
        system_openmp=ctypes.util.find_library("gomp"),
        cache=_cache(),
        temporary=_look_into(Path(tempfile.gettempdir())),
        troubles=tuple(dict.fromkeys(troubles)),
    )


def _physical(device: Device) -> str | None:
    if device.backing == "cpu":
        return None
    index = device.torch.index or 0
    for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"):
        mask = [part for part in os.environ.get(variable, "").split(",") if part.strip()]
        if index < len(mask):
            return mask[index].strip()
    return str(index)


def _torch_range() -> str:
    for requirement in importlib.metadata.requires("torchspan") or ():
        match = re.match(r"torch\s*([<>=0-9.,]+)", requirement)
        if match:
            return match[1]
    return ""


def _torch_target() -> str:
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    if torch.version.xpu:
        return f"XPU {torch.version.xpu}"
    return "MPS" if torch.backends.mps.is_built() else "CPU"


def _drivers() -> tuple[str, ...]:
    found = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd")]
    return tuple(str(path) for path in sorted(found))


def _find_tool(role: str, variable: str | None, names: Sequence[str]) -> Tool:
    named = os.environ.get(variable, "").split() if variable else []
    beside_python = str(Path(sys.executable).parent)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), beside_python])
    for name in named[:1] or names:
        found = shutil.which(name, path=path)
        if found:
            said = _ask([found, "--version"])
            version = next((line for line in said.splitlines() if "ersion" in line), "")
            return Tool(role, found, version or said.partition("\n")[0])
    return Tool(role)


def _find_mpi(launcher: Tool) -> MpiFacts:
    said = _ask([launcher.path, "--version"]) if launcher.path else None
    if importlib.util.find_spec("mpi4py") is None:
        return MpiFacts(launcher=said)
    try:
        library = _ask([sys.executable, "-c", _ASK_MPI4PY], check=True)
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or "").strip().splitlines()
        return MpiFacts(said, None, lines[-1] if lines else f"it ended with {error.returncode}")
    return MpiFacts(said, library.rstrip("\0").partition("\n")[0])


def _ask(command: Sequence[str], *, check: bool = False) -> str:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHER_PREFIXES)
    }
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=check, env=environ
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not answer: {error}"
    return (done.stdout or done.stderr).strip()


def _loaded_openmp() -> tuple[str, ...]:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return ()
    words = (line.split(maxsplit=5) for line in maps.read_text(encoding="utf-8").splitlines())
    paths = {each[5] for each in words if len(each) == 6}
    pattern = re.compile(r"lib(gomp|iomp5|omp)\b.*\.so")
    return tuple(sorted({path for path in paths if pattern.match(Path(path).name)}))


def _cache() -> FolderFacts:
    try:
        return _look_into(cache_folder())
    except TorchspanError as error:
        return FolderFacts(trouble=str(error))


def _look_into(folder: Path) -> FolderFacts:
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return FolderFacts(str(folder), trouble=f"{folder} cannot be read: {error.strerror}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        return FolderFacts(str(folder), trouble=f"{folder} may not be written by this user.")
    return FolderFacts(
        path=str(folder),
        free=found.f_bavail * found.f_frsize,
        # Some file systems have no fixed number of files and say 0 of 0.
        entries=found.f_favail if found.f_files else None,
        executable=not found.f_flag & getattr(os, "ST_NOEXEC", 8),
    )
