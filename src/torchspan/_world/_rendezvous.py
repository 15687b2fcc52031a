# SPDX-License-Identifier: MIT
"""How the ranks of a job find rank 0, whatever launched them."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any

import torch.distributed as dist
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from torchspan._errors import PlacementError, RankError
from torchspan._placement import Placement
from torchspan._world import _slurm
from torchspan._world._hub import Hub
from torchspan._world._jobfile import JobFile
from torchspan._world._line import Line
from torchspan._world._mpi import broadcast_endpoint
from torchspan._world._spoke import Endpoint, find_hub

__all__ = ["Meeting", "choose_way", "derive_ports", "meet"]

_PORTS = range(15_000, 30_000)  # below the ports that systems hand out to outgoing connections
_CANDIDATES = 8


@dataclass(frozen=True)
class Meeting:
    """How the ranks met.

    Attributes:
        line: The line to the other ranks.
        way: What carried rank 0's address, in words.
        store: The launcher's own store, where there is one.
        file: Rank 0's file, to be removed once all have joined.
    """

    line: Line
    way: str
    store: Any = None
    file: JobFile | None = None

    def tidy(self) -> None:
        """Remove what only served to meet."""
        if self.file is not None:
            self.file.remove()


def choose_way(placement: Placement, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Choose how rank 0 is found.

    Args:
        placement: Who this process is, of at least two.
        environ: The process's variables.

    Returns:
        ``"master"`` (MASTER_ADDR and MASTER_PORT), ``"file"`` (one host), ``"slurm"`` or
        ``"mpi"``; and Slurm's hosts, where it has some.

    Raises:
        PlacementError: MASTER_ADDR or MASTER_PORT stands without the other, or Slurm's list of
            hosts makes no sense.
    """
    given = [name for name in ("MASTER_ADDR", "MASTER_PORT") if environ.get(name, "").strip()]
    if len(given) == 2:
        return "master", []
    if given:
        missing = "MASTER_PORT" if given == ["MASTER_ADDR"] else "MASTER_ADDR"
        raise PlacementError(
            f"{given[0]}={environ[given[0]]!r} is set, but {missing} is not. Set both, or neither."
        )
    if placement.launcher == "torchrun":
        raise PlacementError(
            "RANK and WORLD_SIZE are set, but MASTER_ADDR and MASTER_PORT are not. Start the "
            "program with torchrun, or set them too."
        )
    if placement.local_size == placement.size:
        return "file", []
    if placement.launcher in ("slurm", "pmix"):
        hosts = _slurm.find_hosts(environ)
        if len(hosts) > 1:
            return "slurm", hosts
        if hosts:
            return "file", hosts
    if placement.launcher == "flux" and environ.get("FLUX_JOB_NNODES") == "1":
        return "file", []
    return "mpi", []


def meet(placement: Placement, meeting: int, deadline: float) -> Meeting:
    """Find rank 0, or be found as rank 0.

    Args:
        placement: Who this process is, of at least two.
        meeting: How many times this process has met the others before.
        deadline: The time (``time.monotonic``) until which to try.

    Raises:
        RankError: The ranks did not find each other.
        PlacementError: The launcher's variables do not say enough.
    """
    way, hosts = choose_way(placement, os.environ)
    if way == "master":
        return _meet_by_store(placement, meeting, deadline)
    if way == "slurm":
        return _meet_by_slurm(placement, hosts, meeting, deadline)
    if way == "mpi":
        return _meet_by_mpi(placement, deadline)
    file = JobFile(placement, meeting)
    if placement.rank == 0:
        hub, endpoint = open_hub(placement.size, one_host=True)
        file.write(endpoint)
        return Meeting(hub, "a file of this host's", file=file)
    spoke = find_hub(file.read(deadline), placement.rank, deadline)
    return Meeting(spoke, "a file of this host's")


def derive_ports(job: str) -> tuple[int, ...]:
    """The ports at which rank 0 of ``job`` may listen, the same on every host."""
    digest = hashlib.sha256(job.encode()).digest()
    numbers = (int.from_bytes(digest[at : at + 4]) for at in range(0, 4 * _CANDIDATES, 4))
    return tuple(dict.fromkeys(_PORTS[number % len(_PORTS)] for number in numbers))


def open_hub(
    size: int, *, one_host: bool, token: str = "", ports: Sequence[int] = (0,)
) -> tuple[Hub, Endpoint]:
    """Listen as rank 0, and say where."""
    token = token or secrets.token_hex(16)
    hub = Hub(size, token, one_host=one_host, ports=ports)
    return hub, Endpoint(tuple(hub.addresses), (hub.port,), token)


def _meet_by_store(placement: Placement, meeting: int, deadline: float) -> Meeting:
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    seconds = timedelta(seconds=max(1.0, deadline - monotonic()))
    url = f"env://?rank={placement.rank}&world_size={placement.size}"
    try:
        store, _, _ = next(iter(rendezvous(url, timeout=seconds)))
    except (dist.DistError, RuntimeError, ValueError) as error:
        raise RankError(
            f"rank {placement.rank} of {placement.size} did not meet the others at {address} "
            f"(MASTER_ADDR and MASTER_PORT): {_first_line(error)}. Rank 0 must be able to listen "
            "there and the others to reach it; unset both to let torchspan look for it."
        ) from error
    store = PrefixStore(f"torchspan/{meeting}", store)
    line: Line
    if placement.rank == 0:
        one_host = placement.local_size == placement.size
        line, endpoint = open_hub(placement.size, one_host=one_host)
        store.set("line", "\n".join([endpoint.token, str(line.port), *endpoint.addresses]))
    else:
        try:
            token, port, *addresses = store.get("line").decode().split("\n")
        except (dist.DistError, RuntimeError) as error:
            raise RankError(
                f"rank 0 did not say in the store at {address} where it listens: "
                f"{_first_line(error)}. Look at what rank 0 printed."
            ) from error
        endpoint = Endpoint(tuple(addresses), (int(port),), token)
        line = find_hub(endpoint, placement.rank, deadline)
    return Meeting(line, f"the store at {address}", store=store)


def _meet_by_slurm(
    placement: Placement, hosts: list[str], meeting: int, deadline: float
) -> Meeting:
    if placement.rank == 0 and os.environ.get("SLURM_NODEID", "0") != "0":
        raise PlacementError(
            f"rank 0 is not on {hosts[0]}, the first host of Slurm's list, where the other ranks "
            "look for it. Use another --distribution, or set MASTER_ADDR and MASTER_PORT."
        )
    token = f"{placement.job}/{os.getuid()}/{meeting}"
    ports = derive_ports(token)
    way = f"Slurm's first host, {hosts[0]}"
    if placement.rank != 0:
        endpoint = Endpoint((hosts[0],), ports, token)
        return Meeting(find_hub(endpoint, placement.rank, deadline), way)
    try:
        hub, _ = open_hub(placement.size, one_host=False, token=token, ports=ports)
    except OSError as error:
        raise RankError(
            f"none of the ports {', '.join(map(str, ports))} is free on {hosts[0]} ({error}). Set "
            "MASTER_ADDR and MASTER_PORT to a host and a port of your own choice."
        ) from error
    return Meeting(hub, way)


def _meet_by_mpi(placement: Placement, deadline: float) -> Meeting:
    opened: list[Hub] = []

    def listen() -> Endpoint:
        hub, endpoint = open_hub(placement.size, one_host=False)
        opened.append(hub)
        return endpoint

    endpoint = broadcast_endpoint(placement, listen)
    line = opened[0] if opened else find_hub(endpoint, placement.rank, deadline)
    return Meeting(line, "mpi4py")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
