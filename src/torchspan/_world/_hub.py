# SPDX-License-Identifier: MIT
"""Rank 0's end of the line: takes every rank's connection and relays what all must know."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchspan._errors import RankError
from torchspan._world._addresses import LOOPBACK, listen, outside_addresses
from torchspan._world._failure import Failure
from torchspan._world._line import Decide, Line
from torchspan._world._wire import Message, Wire

__all__ = ["Hub"]


@dataclass
class _Peer:
    """One connection, and the rank that said hello on it."""

    wire: Wire
    rank: int | None = None
    about: str = ""
    facts: Message | None = field(default=None)


class Hub(Line):
    """Listens for the other ranks.

    Args:
        size: How many ranks there are.
        token: What a rank must say to be let in.
        one_host: Whether all ranks are on this host, so that nobody else need be heard.
        ports: The ports to listen on, the first that is free; any port by default.

    Raises:
        OSError: None of the ports is free.
    """

    def __init__(
        self, size: int, token: str, *, one_host: bool, ports: Sequence[int] = (0,)
    ) -> None:
        super().__init__(rank=0)
        self.size = size
        self.one_host = one_host
        self._token = token
        self._listener = listen(one_host, ports)
        self._peers: dict[int, _Peer] = {}
        self._ended: set[int] = set()
        self._lost: set[int] = set()
        self._stop, self._stopped = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._stopped, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="torchspan-line", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port on which the hub listens."""
        return int(self._listener.getsockname()[1])

    @property
    def addresses(self) -> list[str]:
        """The addresses under which the other ranks may find the hub, the likeliest first."""
        return [LOOPBACK] if self.one_host else outside_addresses()

    def reached_at(self) -> str | None:
        """The address at which ranks of other hosts found this one; None where there are none."""
        own = set(outside_addresses())
        for peer in list(self._peers.values()):
            if _plain(peer.wire.connection.getpeername()[0]) not in own:
                return _plain(peer.wire.connection.getsockname()[0])
        return None

    def meet(self, facts: Message, decide: Decide, deadline: float) -> Message:
        if not self._wait(lambda: len(self._with_facts()) == self.size - 1, deadline):
            missing = sorted(set(range(1, self.size)) - set(self._with_facts()))
            raise RankError(
                f"{len(missing)} of {self.size} ranks did not arrive in time: "
                f"{', '.join(map(str, missing[:20]))}{', ...' if len(missing) > 20 else ''}. Look "
                "for what they printed, or give join() a longer timeout."
            )
        everybody = [facts, *(self._with_facts()[rank] for rank in range(1, self.size))]
        plan = decide(everybody)
        for peer in list(self._peers.values()):
            peer.wire.send("plan", plan=plan)
        return plan

    def report(self, failure: Failure) -> None:
        self._spread(failure)

    def leave(self, *, ending: bool) -> None:
        with self._changed:
            self._left[0] = ending
        # Rank 0 holds the line and mostly the store, so it stays until nobody needs them.
        self._wait(lambda: len(self._left) == self.size, None)

    def ranks_that_left(self, seconds: float) -> dict[int, bool]:
        return dict(self._left)

    def farewell(self, seconds: float) -> None:
        with self._changed:
            self._ended.add(0)
            self._changed.wait_for(
                lambda: len(self._ended | self._left.keys()) == self.size, seconds
            )
        first = None if self.failure is None else self._peers.get(self.failure.rank)
        if first is not None and first.wire.send("over"):
            with self._changed:
                self._changed.wait_for(lambda: first.rank in self._lost, seconds)
        if self.failure is not None and self.failure.rank != self.rank:
            for peer in list(self._peers.values()):
                peer.wire.send("over")
        self.let_pass()

    def close(self) -> None:
        self._stop.close()
        self._thread.join()
        for key in list((self._selector.get_map() or {}).values()):
            if isinstance(key.data, _Peer):
                key.data.wire.close()
        self._listener.close()
        self._stopped.close()
        self._selector.close()

    def abandon(self) -> None:
        for peer in self._peers.values():
            peer.wire.connection.close()
        self._listener.close()

    def _with_facts(self) -> dict[int, Message]:
        return {rank: peer.facts for rank, peer in self._peers.items() if peer.facts is not None}

    def _spread(self, failure: Failure) -> None:
        if self._learn(failure):
            for rank, peer in list(self._peers.items()):
                if rank not in self._left:
                    peer.wire.send(
                        "failure", rank=failure.rank, what=failure.kind, text=failure.text
                    )

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._stopped:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.data)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            self._selector.register(connection, selectors.EVENT_READ, _Peer(Wire(connection)))

    def _read(self, peer: _Peer) -> None:
        messages = peer.wire.receive()
        known = peer.rank is not None
        if messages is None or not all(self._take(peer, message) for message in messages):
            self._selector.unregister(peer.wire.connection)
            peer.wire.close()
            if known and peer.rank is not None and self._peers.get(peer.rank) is peer:
                self._lose(peer.rank, peer.about)

    def _take(self, peer: _Peer, message: Message) -> bool:
        """Act on a message; False closes the connection of whoever does not belong here."""
        kind = message.get("kind")
        if peer.rank is None:
            return kind == "hello" and self._admit(peer, message)
        if kind == "failure":
            self._spread(Failure(message["rank"], message["what"], message["text"]))
            return True
        if kind == "ask":
            return peer.wire.send("left", ranks=dict(self._left))
        with self._changed:
            if kind == "facts":
                peer.facts = message["facts"]
            elif kind == "leave":
                self._left[peer.rank] = message["ending"]
            elif kind == "end":
                self._ended.add(peer.rank)
            self._changed.notify_all()
        return True

    def _admit(self, peer: _Peer, message: Message) -> bool:
        rank = message.get("rank")
        known = message.get("token") == self._token
        if not (known and isinstance(rank, int) and 0 < rank < self.size):
            return False
        peer.rank, peer.about = rank, str(message.get("about", ""))
        with self._changed:
            self._peers[rank] = peer
        return peer.wire.send("welcome")

    def _lose(self, rank: int, about: str) -> None:
        with self._changed:
            done = rank in self._left or rank in self._ended
            self._ended.add(rank)
            self._lost.add(rank)
            self._changed.notify_all()
        if not done:
            self._spread(Failure(rank, "gone", about))


def _plain(address: str) -> str:
    return address.removeprefix("::ffff:")
