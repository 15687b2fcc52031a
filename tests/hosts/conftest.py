# SPDX-License-Identifier: MIT
"""Two hosts on one machine: two network namespaces with a cable between them.

Each has a hostname of its own that, as on Debian, it takes for 127.0.1.1 itself. Nothing outside
the namespaces is touched but /etc/netns, where `ip netns exec` looks for a namespace's /etc/hosts.
Only `make hosts` runs these tests, as root.
"""

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.launchers import Running

HERE = Path(__file__).parent
ON_HOST = HERE / "on_host"
FILES = Path("/etc/netns")


def pytest_collection_modifyitems(config, items):
    if any("hosts" in Path(word).parts for word in config.args):
        return
    skip = pytest.mark.skip(reason="two hosts are made by 'make hosts' only, as root")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(skip)


@dataclass(frozen=True)
class Host:
    """One host: its name, its address and its end of the cable."""

    name: str
    address: str
    cable: str

    def start(self, *words, **environ):
        """Start a command here."""
        return Running([str(ON_HOST), self.name, *map(str, words)], environ)

    def ip(self, *words):
        subprocess.run(["ip", "-n", self.name, *words], check=True, capture_output=True, text=True)


@pytest.fixture(scope="session")
def hosts():
    """Two hosts, removed again whatever happens."""
    if os.getuid() != 0:
        pytest.skip("only root can make network namespaces")
    for tool in ("ip", "unshare"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}; apt-get install iproute2 util-linux")
    mark = f"ts{os.getpid()}"
    pair = [Host(f"{mark}{x}", f"10.213.7.{n}", f"cable{x}") for n, x in enumerate("ab", 1)]
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_folder)
        try:
            for host in pair:
                stack.callback(_remove, host)
                _make(host, pair)
            a, b = pair
            a.ip(
                "link",
                "add",
                "name",
                a.cable,
                *f"type veth peer name {b.cable}".split(),
                "netns",
                b.name,
            )
            for host in pair:
                host.ip("addr", "add", f"{host.address}/24", "dev", host.cable)
                host.ip("link", "set", host.cable, "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this kernel makes no such hosts: {error.stderr.strip()}")
        yield pair


def _make(host, pair):
    subprocess.run(["ip", "netns", "add", host.name], check=True, capture_output=True, text=True)
    host.ip("link", "set", "lo", "up")
    lines = ["127.0.0.1 localhost", f"127.0.1.1 {host.name}"]
    lines += [f"{other.address} {other.name}" for other in pair if other is not host]
    folder = FILES / host.name
    folder.mkdir(parents=True)
    (folder / "hosts").write_text("\n".join(lines) + "\n")


def _remove(host):
    subprocess.run(["ip", "netns", "del", host.name], check=False, capture_output=True)
    shutil.rmtree(FILES / host.name, ignore_errors=True)


def _remove_folder():
    with contextlib.suppress(OSError):
        FILES.rmdir()
