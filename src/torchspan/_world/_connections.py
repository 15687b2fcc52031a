# SPDX-License-Identifier: MIT
"""The TCP connections that gloo opened, so that a rank blocked in gloo can be freed.

gloo cannot be aborted: a rank that waits in one of its collectives waits until the connection to
the rank it waits for closes, which may be hours. So the connections that appear while the process
group is made are remembered, and shut down when a rank has failed or this one leaves; gloo then
raises in whatever call is blocked.
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

__all__ = ["Connections"]

_DESCRIPTORS = Path("/proc/self/fd")


class Connections:
    """The sockets that were opened between two moments.

    Where the system has no ``/proc`` there are none, and a blocked rank is freed when the failed
    one's process ends.
    """

    def __init__(self) -> None:
        self._before = _sockets()
        self._found: dict[int, str] = {}

    def note(self) -> None:
        """Remember the connected sockets that were opened since this object was made."""
        for number, name in _sockets().items():
            if self._before.get(number) != name and _is_connected(number):
                self._found[number] = name

    def cut(self) -> None:
        """Shut down those of them that are still open."""
        found, self._found = self._found, {}
        for number, name in found.items():
            # The kernel reuses numbers but not names, so another file is never touched.
            if _name(number) != name:
                continue
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
                one.shutdown(socket.SHUT_RDWR)


def _sockets() -> dict[int, str]:
    if not _DESCRIPTORS.is_dir():
        return {}
    found = {int(entry.name): _name(int(entry.name)) for entry in _DESCRIPTORS.iterdir()}
    return {number: name for number, name in found.items() if name.startswith("socket:")}


def _name(number: int) -> str:
    try:
        return str((_DESCRIPTORS / str(number)).readlink())
    except OSError:
        return ""


def _is_connected(number: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
        one.getpeername()
        return one.family in (socket.AF_INET, socket.AF_INET6)
    return False
