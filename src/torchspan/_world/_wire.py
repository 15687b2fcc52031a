# SPDX-License-Identifier: MIT
"""One TCP connection that carries small JSON messages, one a line."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
from typing import Any

__all__ = ["Message", "Wire"]

Message = dict[str, Any]

LONGEST_LINE = 1 << 20
SEND_SECONDS = 5


class Wire:
    """Sends and receives messages on ``connection``; any thread may send, one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._buffer = b""
        # A signal handler may send in the middle of a send of the same thread.
        self._sending = threading.RLock()
        connection.settimeout(None)
        _keep_alive(connection)
        # The kernel's own limit: Python's would hold for the receiving thread as well, which waits
        # without one because a rank that computes has nothing to say.
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0)
        )

    def send(self, kind: str, **fields: Any) -> bool:
        """Send a message; False where the other end is gone."""
        line = json.dumps({"kind": kind, **fields}).encode() + b"\n"
        with self._sending:
            try:
                self.connection.sendall(line)
            except OSError:
                return False
        return True

    def receive(self) -> list[Message] | None:
        """Wait for the next messages; None once the other end is gone."""
        try:
            data = self.connection.recv(1 << 16)
        except OSError:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if not data or len(self._buffer) > LONGEST_LINE:
            return None
        try:
            messages = [json.loads(line) for line in lines]
        except ValueError:
            return None
        return messages if all(isinstance(one, dict) for one in messages) else None

    def close(self) -> None:
        """Close the connection; a receiver that waits on it wakes up."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def _keep_alive(connection: socket.socket) -> None:
    """Let the kernel find a host that vanished within 20 s.

    The kernel at the other end answers, not the process: a rank that computes for an hour without
    letting Python run is alive all the same, which a heartbeat sent by a thread would not show.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000)
