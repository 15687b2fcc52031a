# SPDX-License-Identifier: MIT
"""Rank 0's address on several hosts under MPI: one broadcast by mpi4py."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

from torchspan._errors import RankError
from torchspan._placement import Placement
from torchspan._world._spoke import Endpoint

__all__ = ["broadcast_endpoint"]

_ELSE = "Or set MASTER_ADDR and MASTER_PORT to a host and a free port that all ranks can reach."


def broadcast_endpoint(placement: Placement, open_hub: Callable[[], Endpoint]) -> Endpoint:
    """Broadcast where rank 0 listens.

    Args:
        placement: Who this process is.
        open_hub: Opens rank 0's end of the line; called there only.

    Raises:
        RankError: mpi4py is missing, or is built for another MPI than the launcher's.
    """
    communicator = _find_communicator(placement)
    endpoint: Endpoint | str | None = None
    if placement.rank == 0:
        try:
            endpoint = open_hub()
        except OSError as error:
            endpoint = f"rank 0 cannot listen for the other ranks: {error}"
    endpoint = communicator.bcast(endpoint, root=0)
    if not isinstance(endpoint, Endpoint):
        raise RankError(f"{endpoint}. {_ELSE}")
    return endpoint


def _find_communicator(placement: Placement) -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError, OSError) as error:
        raise RankError(
            f"{placement.size} ranks were started on more than one host by "
            f"{placement.launcher}, and mpi4py, which tells them rank 0's address, cannot be "
            f"imported ({error}). Install it with this MPI's mpicc on the PATH: "
            f"pip install --no-binary mpi4py 'torchspan[mpi]'. {_ELSE}"
        ) from error
    if not MPI.Is_initialized():
        MPI.Init_thread()
        atexit.register(MPI.Finalize)
    world = MPI.COMM_WORLD
    if (world.rank, world.size) != (placement.rank, placement.size):
        library = MPI.Get_library_version().split("\n")[0].strip("\0 ")
        raise RankError(
            f"{placement.launcher} says that this is rank {placement.rank} of {placement.size}, "
            f"mpi4py says rank {world.rank} of {world.size}: it uses another MPI ({library}). "
            "Install it for this one, with its mpicc on the PATH: pip install --force-reinstall "
            f"--no-binary mpi4py --no-cache-dir mpi4py. {_ELSE}"
        )
    return world
