# SPDX-License-Identifier: MIT
"""This host's network addresses, and which of another host's can be reached from here.

Hostnames are not trusted: Debian maps a machine's own name to 127.0.1.1, and clusters have names
for networks that not every host is on. So a host publishes the addresses of its interfaces, and
whoever wants to reach it tries them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["LOOPBACK", "find_interfaces", "listen", "outside_addresses"]

LOOPBACK = "127.0.0.1"

_SIOCGIFADDR = 0x8915


def find_interfaces() -> dict[str, str]:
    """The addresses of this host, each with the name of its network interface."""
    found: dict[str, str] = {}
    if sys.platform != "linux":
        loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
        return {LOOPBACK: loopback[0]} if loopback else {}
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
                found[socket.inet_ntoa(answer[20:24])] = name
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
            digits, _, _, scope, _, name = line.split()
            if scope == "00":
                found[str(ipaddress.IPv6Address(bytes.fromhex(digits)))] = name
    return found


def outside_addresses() -> list[str]:
    """The addresses under which other hosts may reach this one, loopback last."""
    found = list(find_interfaces())
    if sys.platform != "linux":
        with contextlib.suppress(OSError):
            found += [str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)]
    return sorted(dict.fromkeys(found), key=lambda text: ipaddress.ip_address(text).is_loopback)


def listen(one_host: bool, ports: Sequence[int] = (0,)) -> socket.socket:
    """Listen for other ranks, on the first of ``ports`` that is free.

    Args:
        one_host: Whether only processes of this host need to come through.
        ports: The ports to try; 0 is any.

    Raises:
        OSError: None is free.
    """
    last: OSError | None = None
    for port in ports:
        try:
            if one_host:
                return socket.create_server((LOOPBACK, port), backlog=1024)
            if socket.has_dualstack_ipv6():
                return socket.create_server(
                    ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024
                )
            return socket.create_server(("", port), backlog=1024)
        except OSError as error:
            last = error
    assert last is not None
    raise last
