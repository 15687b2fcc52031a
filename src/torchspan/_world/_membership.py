# SPDX-License-Identifier: MIT
"""One rank's part in a world of several: how it begins, leaves and gives up with the others."""

from __future__ import annotations

from collections.abc import Callable

from torchspan._devices import Device, DeviceSpec, parse_devices
from torchspan._errors import ArgumentError, RankError, TorchspanError
from torchspan._placement import Placement
from torchspan._world._backend import choose_backend, describe_rank
from torchspan._world._failure import Failure
from torchspan._world._guard import Guard
from torchspan._world._hub import Hub
from torchspan._world._line import Line
from torchspan._world._session import Session
from torchspan._world._wire import Message
from torchspan._world._world import World

__all__ = ["Membership", "find_device"]


class Membership:
    """Ties this rank to the others: from here on, a failure of any ends all.

    Args:
        line: The line to the other ranks.
        session: What this process sets up for the world.
        last_words: Removes what must not be left behind should a signal end this process.
    """

    def __init__(
        self, line: Line, session: Session, last_words: Callable[[], None] = lambda: None
    ) -> None:
        self._line = line
        self._session = session
        self._left = False
        self._guard = Guard(line, session.free, self.leave)
        self._guard.last_words = last_words
        self._guard.arm()

    def decide(
        self, device: DeviceSpec, placement: Placement, backend: str | None, deadline: float
    ) -> tuple[Device, Message]:
        """Tell the others of this rank, and get what all begin with.

        Args:
            device: What this rank asks for.
            placement: Who this rank is.
            backend: What torch.distributed shall use; None where the ranks are to choose.
            deadline: The time (``time.monotonic``) until which to wait for the others.

        Returns:
            This rank's device, and rank 0's plan.

        Raises:
            TorchspanError: On every rank, if any cannot begin; all have left the world then.
        """
        own, problem = None, None
        try:
            own = find_device(device, placement)
            facts = describe_rank(own, backend)
        except TorchspanError as error:
            problem, facts = error, {"problem": Failure.of(placement.rank, error).text}
        plan = self._line.meet(facts, self._plan, deadline)
        if own is not None and "problem" not in plan:
            return own, plan
        self.leave()
        if problem is not None:
            raise problem
        rank, text = plan["problem"]
        if rank is None:
            raise ArgumentError(f"{text}. Give every rank the same.")
        raise Failure(rank, "raised", text).error()

    def open_world(self, placement: Placement, device: Device) -> World:
        """The world, once the session has started."""
        self._guard.watch_unhandled()
        return World(placement, device, self._session.found_groups(), self._guard, self.leave)

    def leave(self) -> None:
        """Leave in order.

        Raises:
            RankError: Another rank failed.
        """
        if self._guard.ended:
            self._session.stop()
            return
        try:
            self._guard.check()
            self._session.stop()
            self._line.leave(ending=self._guard.exiting)
        except RankError as error:
            self._session.stop()
            self._guard.fail_unless_others(error)
            raise
        self._left = True
        self._guard.disarm()
        self._line.close()
        self._session.store = None

    def give_up(self, error: BaseException) -> None:
        """Tell the others that this rank does not join, for ``error``, which the caller raises.

        Raises:
            RankError: Another rank's failure is the reason.
        """
        self._session.stop()
        if not self._left:
            self._guard.watch_unhandled()
            self._guard.raise_reason(error)

    def _plan(self, everybody: list[Message]) -> Message:
        for rank, facts in enumerate(everybody):
            if "problem" in facts:
                return {"problem": [rank, facts["problem"]]}
        reached = self._line.reached_at() if isinstance(self._line, Hub) else None
        return choose_backend(everybody) | {"reached_at": reached, "port": self._session.port}


def find_device(device: DeviceSpec, placement: Placement) -> Device:
    """The one device that a rank asks for.

    Raises:
        DeviceError: It is not there.
        ArgumentError: Several were named.
    """
    found = parse_devices(device, placement)
    if len(found) > 1:
        raise ArgumentError(
            f"device={device!r} names {len(found)} devices, and a rank joins with one. Give one "
            "such as 'cuda:0', or 'rank' for this rank's own."
        )
    return found[0]
