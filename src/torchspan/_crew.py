# SPDX-License-Identifier: MIT
"""Threads of one core each that share a heap of pieces.

OpenMP's threads meet at a barrier after every operation, so one that is held up holds up all:
beside any other load, a batch in chunks took ten times as long. Here each thread takes the next
chunk when it is done with its own, and they meet once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from torchspan._devices import Device
from torchspan._workers import Worker

__all__ = ["Crew"]

Piece = TypeVar("Piece")


class Crew:
    """Workers of one thread each, who end with it.

    Args:
        device: The device whose work they do.
        size: How many they are.
    """

    def __init__(self, device: Device, size: int) -> None:
        self._workers = [Worker(device, 1, serves=True) for _ in range(size)]

    @property
    def size(self) -> int:
        """How many they are; none of them is left in a forked child or at Python's end."""
        return sum(worker.alive for worker in self._workers)

    def share(self, pieces: Iterable[Piece], work: Callable[[Piece], None]) -> None:
        """Do ``work`` on each of the pieces, several at a time.

        Raises:
            BaseException: What ``work`` raised first; pieces not yet begun are then left.
        """
        heap = iter(pieces)
        taking = threading.Lock()
        ended = threading.Semaphore(0)
        failures: list[BaseException] = []

        def take() -> None:
            try:
                while not failures:
                    with taking:
                        piece = next(heap, None)
                    if piece is None:
                        break
                    work(piece)
            except BaseException as error:
                failures.append(error)
            finally:
                ended.release()

        for worker in self._workers:
            worker.put(take)
        left = len(self._workers)
        while left:
            try:
                ended.acquire()
                left -= 1
            except KeyboardInterrupt as interrupt:
                # The caller's memory is in use until the pieces under way are done.
                failures.insert(0, interrupt)
        if failures:
            raise failures[0]
