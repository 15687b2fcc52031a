# SPDX-License-Identifier: MIT
"""Join the other ranks: meet, decide together, start torch.distributed."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import time

import torch.distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]

from torchspan._devices import DeviceSpec
from torchspan._errors import ArgumentError, PlacementError
from torchspan._log import log, timed
from torchspan._placement import Placement, find_placement
from torchspan._world._addresses import LOOPBACK, find_interfaces
from torchspan._world._backend import choose_backend, choose_interface, describe_rank, find_host
from torchspan._world._hub import Hub
from torchspan._world._line import Line
from torchspan._world._membership import Membership, find_device
from torchspan._world._rendezvous import meet, open_hub
from torchspan._world._session import Session
from torchspan._world._spoke import Endpoint, Spoke, find_hub
from torchspan._world._world import World

__all__ = ["join"]

_open: World | None = None
_meetings = 0


def join(
    device: DeviceSpec = "rank", *, backend: str | None = None, timeout: float = 300.0
) -> World:
    """Join the other ranks that the launcher started, through torch.distributed.

    A process started alone becomes rank 0 of 1. Where torch.distributed runs already it is joined
    and left running at the end. Joining again before leaving gives the same world once more.

    Args:
        device: The one device of this rank; by default its own of the visible accelerators, or
            the CPU.
        backend: What torch.distributed shall use; by default NCCL or XCCL where every rank has an
            accelerator of its own, with gloo for CPU tensors, and gloo alone otherwise.
        timeout: How many seconds to wait for the other ranks.

    Returns:
        The world: use it in a ``with`` statement, or call its ``close()``.

    Raises:
        PlacementError: The launcher's variables are half set or contradict each other.
        DeviceError: The device is not there.
        ArgumentError: ``device`` names several, ``timeout`` is not positive, or the ranks ask for
            different backends.
        RankError: The ranks did not find each other, or another rank failed.
    """
    global _open
    if not timeout > 0:
        raise ArgumentError(f"timeout={timeout!r} is no positive number of seconds.")
    if _open is not None and not _open.closed:
        _open._entered += 1
        return _open
    deadline = time.monotonic() + timeout
    if dist.is_initialized():
        _open = _adopt(device, deadline)
        return _open
    placement = find_placement()
    if placement.size == 1:
        _open = _begin_alone(placement, device, backend)
    else:
        with timed("rank %d of %d joined", placement.rank, placement.size):
            _open = _begin(placement, device, backend, deadline)
    return _open


def _begin_alone(placement: Placement, device: DeviceSpec, backend: str | None) -> World:
    own = find_device(device, placement)
    plan = choose_backend([describe_rank(own, backend)])
    session = Session(HashStore())
    session.start(plan["backend"], placement, own, find_interfaces().get(LOOPBACK))
    log.info("alone on %s, with %s", own, plan["backend"])

    def leave() -> None:
        atexit.unregister(world.leave_now)
        session.stop()

    world = World(placement, own, session.found_groups(), None, leave)
    atexit.register(world.leave_now)
    return world


def _begin(placement: Placement, device: DeviceSpec, backend: str | None, deadline: float) -> World:
    global _meetings
    meeting = meet(placement, _meetings, deadline)
    _meetings += 1
    log.info("rank %d met the others by %s", placement.rank, meeting.way)
    line, session = meeting.line, Session(meeting.store)
    member = Membership(line, session, meeting.tidy)
    try:
        if meeting.store is None and isinstance(line, Hub):
            session.serve_store(placement.size, one_host=line.one_host)
        own, plan = member.decide(device, placement, backend, deadline)
        if session.store is None and isinstance(line, Spoke):
            session.reach_store(line.ends()[0], plan["port"], deadline)
        local_size = plan["places"][placement.rank][1]
        placement = dataclasses.replace(placement, local_size=local_size)
        interface = choose_interface(line, plan["reached_at"])
        session.start(plan["backend"], placement, own, interface)
    except BaseException as error:
        member.give_up(error)
        raise
    finally:
        meeting.tidy()
    log.info("%s over %s, because %s", plan["backend"], interface or "its default", plan["why"])
    return member.open_world(placement, own)


def _adopt(device: DeviceSpec, deadline: float) -> World:
    """Join the ranks of a process group that the program started itself."""
    rank, size = dist.get_rank(), dist.get_world_size()
    session = Session()
    session.adopt()
    groups = session.found_groups()
    hosts = [find_host()] * size
    if size > 1:
        dist.all_gather_object(hosts, find_host(), group=groups.control)
    placement = _place(rank, hosts)
    log.info("rank %d joined the torch.distributed that was running already", rank)
    if size == 1:
        return World(placement, find_device(device, placement), groups, None, session.stop)
    endpoints: list[Endpoint | None] = [None]
    line: Line
    if rank == 0:
        line, endpoints[0] = open_hub(size, one_host=len(set(hosts)) == 1)
    dist.broadcast_object_list(endpoints, src=0, group=groups.control)
    if rank != 0 and endpoints[0] is not None:
        line = find_hub(endpoints[0], rank, deadline)
    member = Membership(line, session)
    try:
        own, _ = member.decide(device, placement, None, deadline)
    except BaseException as error:
        member.give_up(error)
        raise
    return member.open_world(placement, own)


def _place(rank: int, hosts: list[str]) -> Placement:
    """The placement of a rank whose process group the program started itself."""
    size, local_size = len(hosts), hosts.count(hosts[rank])
    with contextlib.suppress(PlacementError):
        found = find_placement()
        if (found.rank, found.size) == (rank, size):
            return dataclasses.replace(found, local_size=local_size)
    local_rank = hosts[:rank].count(hosts[rank])
    return Placement(rank, size, local_rank, local_size, "torch.distributed")
