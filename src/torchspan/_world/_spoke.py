# SPDX-License-Identifier: MIT
"""Every other rank's end of the line: one connection to rank 0."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from torchspan._errors import RankError
from torchspan._world._failure import Failure
from torchspan._world._line import Decide, Line
from torchspan._world._wire import Message, Wire

__all__ = ["Endpoint", "Spoke", "find_hub"]

_ATTEMPT_SECONDS = 3.0


@dataclass(frozen=True)
class Endpoint:
    """Where rank 0 listens.

    Attributes:
        addresses: Names or addresses of rank 0's host, the likeliest first.
        ports: The port, or several that it may be.
        token: What rank 0 wants to hear.
    """

    addresses: tuple[str, ...]
    ports: tuple[int, ...]
    token: str


def find_hub(endpoint: Endpoint, rank: int, deadline: float) -> Spoke:
    """Connect to rank 0.

    Args:
        endpoint: Where it listens; it may not have begun to yet.
        rank: This rank.
        deadline: The time (``time.monotonic``) until which to try.

    Raises:
        RankError: It was not found in time.
    """
    pause, last = 0.02, "no time was left"
    while True:
        for address in endpoint.addresses:
            for port in endpoint.ports:
                seconds = min(_ATTEMPT_SECONDS, deadline - time.monotonic())
                if seconds <= 0:
                    where = " or ".join(endpoint.addresses)
                    raise RankError(
                        f"rank {rank} did not find rank 0 at {where} in time ({last}). Look at "
                        "what rank 0 printed; where the hosts cannot reach each other under these "
                        "addresses, set MASTER_ADDR and MASTER_PORT to what they can reach."
                    )
                try:
                    return _say_hello((address, port), endpoint.token, rank, seconds)
                except OSError as error:
                    last = str(error)
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(2 * pause, 0.5)


def _say_hello(address: tuple[str, int], token: str, rank: int, seconds: float) -> Spoke:
    connection = socket.create_connection(address, seconds)
    wire = Wire(connection)
    about = f" (process {os.getpid()} on {socket.gethostname()})"
    wire.send("hello", token=token, rank=rank, about=about)
    connection.settimeout(seconds)
    messages = wire.receive()
    if not messages or messages[0].get("kind") != "welcome":
        wire.close()
        raise OSError("somebody else answered")
    connection.settimeout(None)
    return Spoke(wire, rank, messages[1:])


class Spoke(Line):
    """The line of every rank but 0: one connection to the hub."""

    def __init__(self, wire: Wire, rank: int, messages: Sequence[Message] = ()) -> None:
        super().__init__(rank)
        self.wire = wire
        self._plan: Message | None = None
        self._answered = 0
        self._closing = False
        for message in messages:
            self._take(message)
        self._thread = threading.Thread(target=self._listen, name="torchspan-line", daemon=True)
        self._thread.start()

    def meet(self, facts: Message, decide: Decide, deadline: float) -> Message:
        self.wire.send("facts", facts=facts)
        if not self._wait(lambda: self._plan is not None, deadline):
            raise RankError(
                "rank 0 answered, but not every rank arrived in time to begin. Look for a rank "
                "that failed before it joined, or give join() a longer timeout."
            )
        assert self._plan is not None
        return self._plan

    def report(self, failure: Failure) -> None:
        self.wire.send("failure", rank=failure.rank, what=failure.kind, text=failure.text)
        self._learn(failure)

    def leave(self, *, ending: bool) -> None:
        self._closing = True
        self.wire.send("leave", ending=ending)

    def ranks_that_left(self, seconds: float) -> dict[int, bool]:
        with self._changed:
            asked = self._answered
            if self.wire.send("ask"):
                self._changed.wait_for(lambda: self._answered > asked, seconds)
            return dict(self._left)

    def farewell(self, seconds: float) -> None:
        self._closing = True
        if self.wire.send("end"):
            with self._changed:
                self._changed.wait_for(lambda: self._over, seconds)
        self.let_pass()

    def close(self) -> None:
        self._closing = True
        self.wire.close()
        self._thread.join()

    def ends(self) -> tuple[str, str]:
        """The addresses of the connection's two ends: rank 0's, and this rank's."""
        there = self.wire.connection.getpeername()[0]
        here = self.wire.connection.getsockname()[0]
        return there.removeprefix("::ffff:"), here.removeprefix("::ffff:")

    def abandon(self) -> None:
        self.wire.connection.close()

    def _listen(self) -> None:
        while (messages := self.wire.receive()) is not None:
            for message in messages:
                self._take(message)
        if not self._closing:
            self._learn(Failure(0, "gone"))
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _take(self, message: Message) -> None:
        if message["kind"] == "failure":
            self._learn(Failure(message["rank"], message["what"], message["text"]))
            return
        with self._changed:
            if message["kind"] == "plan":
                self._plan = message["plan"]
            elif message["kind"] == "left":
                self._left = {int(rank): ending for rank, ending in message["ranks"].items()}
                self._answered += 1
            elif message["kind"] == "over":
                self._over = True
            self._changed.notify_all()
