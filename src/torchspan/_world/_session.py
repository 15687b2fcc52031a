# SPDX-License-Identifier: MIT
"""What joining sets up in this process, and takes down again: the store and the process groups."""

from __future__ import annotations

import contextlib
import os
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from torchspan._devices import Device
from torchspan._errors import RankError
from torchspan._log import log
from torchspan._placement import Placement
from torchspan._world._addresses import LOOPBACK, listen
from torchspan._world._connections import Connections
from torchspan._world._world import Groups

__all__ = ["Session"]

_INTERFACE = "GLOO_SOCKET_IFNAME"
_OWN_LIBRARIES = ("nccl", "xccl")


class Session:
    """torch.distributed as this process uses it for one world.

    Attributes:
        groups: The process groups, while there are any.
        store: The store through which torch.distributed finds its connections.
        port: Where the other ranks reach the store that this one serves; None where it serves none.
    """

    def __init__(self, store: Any = None) -> None:
        self.store = store
        self.port: int | None = None
        self.groups: Groups | None = None
        self._owns_default = False
        self._interface: str | None = None
        self._connections = Connections()

    def serve_store(self, size: int, *, one_host: bool) -> None:
        """Open a store as rank 0."""
        listener = listen(one_host)
        self.port = int(listener.getsockname()[1])
        self.store = TCPStore(
            LOOPBACK,
            self.port,
            size,
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )

    def reach_store(self, address: str, port: int, deadline: float) -> None:
        """Connect to rank 0's store.

        Raises:
            RankError: It cannot be reached.
        """
        seconds = timedelta(seconds=max(1.0, deadline - time.monotonic()))
        try:
            self.store = TCPStore(address, port, wait_for_workers=False, timeout=seconds)
        except (dist.DistError, RuntimeError) as error:
            raise RankError(
                f"rank 0's store at {address}:{port} cannot be reached ({error}), though rank 0 "
                "itself could be. Look for a firewall that lets only some ports through, or set "
                "MASTER_ADDR and MASTER_PORT."
            ) from error

    def start(
        self, backend: str, placement: Placement, device: Device, interface: str | None
    ) -> None:
        """Start torch.distributed over the store.

        Args:
            backend: What it shall use.
            placement: Who this process is.
            device: This rank's device, which NCCL and XCCL are bound to.
            interface: The network interface for gloo; its own choice where there is none.
        """
        if interface is not None and not os.environ.get(_INTERFACE):
            # Kept while the world is open: groups that are made later read it too.
            os.environ[_INTERFACE] = self._interface = interface
        bound = any(name in backend for name in _OWN_LIBRARIES)
        self._connections = Connections()
        dist.init_process_group(
            backend,
            store=self.store,
            rank=placement.rank,
            world_size=placement.size,
            device_id=device.torch if bound else None,
        )
        self._owns_default = True
        self._connections.note()
        self.groups = _find_groups(dist.group.WORLD)
        # A rank that left at once would break the connections that others still make.
        dist.all_reduce(torch.zeros(1), group=self.groups.control)

    def adopt(self) -> None:
        """Take the default group that the program started itself; a collective call."""
        self.groups = _find_groups(dist.group.WORLD)

    def found_groups(self) -> Groups:
        """The process groups, which ``start`` or ``adopt`` has found."""
        assert self.groups is not None
        return self.groups

    def free(self) -> None:
        """Let a collective operation that is blocked in another thread raise."""
        self._connections.cut()
        if self.groups is not None and self.groups.direct:
            try:
                self.groups.data.abort()
            except (dist.DistError, RuntimeError) as error:
                log.info("the process group could not be aborted: %s", error)

    def stop(self) -> None:
        """End the groups that were started here, in order or after ``free``."""
        if self.groups is not None:
            if self._owns_default and dist.is_initialized():
                dist.destroy_process_group()
            elif self.groups.control is not self.groups.data and dist.is_initialized():
                dist.destroy_process_group(self.groups.control)
            self.groups = None
        self._connections.cut()
        if self._interface is not None:
            with contextlib.suppress(KeyError):
                del os.environ[_INTERFACE]
            self._interface = None


def _find_groups(data: Any) -> Groups:
    """The groups for data and for control; makes one for control where ``data`` has no CPU."""
    pairs = dict(pair.split(":") for pair in str(dist.get_backend_config(data)).split(","))
    direct = {kind for kind, backend in pairs.items() if backend in _OWN_LIBRARIES}
    control = data if "cpu" in pairs else dist.new_group(backend="gloo")
    return Groups(data, control, frozenset(direct))
