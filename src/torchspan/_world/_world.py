# SPDX-License-Identifier: MIT
"""The ranks of a job, as one object."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist

from torchspan._devices import Device
from torchspan._errors import ArgumentError
from torchspan._placement import Placement
from torchspan._world._agreement import agree
from torchspan._world._guard import Guard
from torchspan._world._payload import OPS, describe, find_problem, flatten, pack, view_bytes

__all__ = ["Groups", "World"]


@dataclass(frozen=True)
class Groups:
    """The process groups of a world.

    Attributes:
        data: The default group of torch.distributed, which carries the data.
        control: A group that carries CPU tensors; the same one wherever it can.
        direct: The kinds of device whose tensors the data group takes as they are.
    """

    data: Any
    control: Any
    direct: frozenset[str]


class World:
    """The ranks that ``torchspan.join`` brought together; a context manager.

    Attributes:
        rank: Number of this process among all, from 0.
        size: How many processes there are.
        local_rank: Number of this process among those on its host, from 0.
        device: The device of this rank.
        placement: What the launcher said, with what the ranks found out together.
        backend: What torch.distributed was started with, such as ``"cpu:gloo,cuda:nccl"``.
    """

    def __init__(
        self,
        placement: Placement,
        device: Device,
        groups: Groups,
        guard: Guard | None,
        leave: Callable[[], None],
    ) -> None:
        self.placement = placement
        self.device = device
        self.rank = placement.rank
        self.size = placement.size
        self.local_rank = placement.local_rank
        self.backend = str(dist.get_backend_config(groups.data))
        self._groups: Groups | None = groups
        self._guard = guard
        self._leave = leave
        self._process = os.getpid()
        self._entered = 1
        self._closed = False
        if guard is not None:
            guard.close = self.leave_now

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<torchspan.World rank {self.rank} of {self.size} on {self.device}{state}>"

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, the one that prints and writes what is needed once."""
        return self.rank == 0

    @property
    def group(self) -> Any:
        """The default process group of torch.distributed, for everything this class does not do."""
        return self._open_groups().data

    @property
    def closed(self) -> bool:
        """Whether this process has left."""
        return self._closed

    def all_reduce(
        self, tensor: torch.Tensor, op: str = "sum", *, check: bool = True
    ) -> torch.Tensor:
        """Reduce a tensor over all ranks, element by element.

        Args:
            tensor: The same dtype and shape on every rank, on the CPU or on a device. It is not
                changed, and no gradient flows through.
            op: ``"sum"``, ``"mean"`` (floating point and complex), ``"max"`` or ``"min"`` (not
                complex).
            check: Whether all ranks first make sure, by one small message, that they mean the same
                call, with the same ``op``, dtype and shape. Without it a difference hangs or gives
                garbage; turn it off on every rank alike.

        Returns:
            The reduced tensor, a new one, on the device of ``tensor``.

        Raises:
            ArgumentError: On every rank: an argument does not fit, or the ranks differ.
            RankError: Another rank failed or left.
        """
        problem = find_problem(tensor, op)
        about = describe(tensor)
        with self._calling():
            if check:
                self._agree(f"all_reduce(op={op!r}) of {about}", problem)
            elif problem is not None:
                raise ArgumentError(problem)
            result = tensor.detach().clone(memory_format=torch.contiguous_format)
            if self.size == 1:
                return result
            moving = self._loadable(result)
            dist.all_reduce(moving, OPS[op], group=self._carrier(moving))
            if op == "mean":
                moving /= self.size
            return moving.to(result.device)

    def broadcast(self, value: Any = None, root: int = 0) -> Any:
        """Give every rank what rank ``root`` has.

        All ranks first make sure that they mean the same call with the same ``root``.

        Args:
            value: A tensor, or anything that can be pickled; only rank ``root``'s counts.
            root: The rank that gives.

        Returns:
            On ``root`` the value itself, elsewhere a copy. A tensor that was on the CPU arrives on
            the CPU, one on an accelerator arrives on the rank's own device.

        Raises:
            ArgumentError: On every rank: the value cannot be pickled, there is no such rank, or
                the ranks differ.
            RankError: Another rank failed or left.
        """
        giving = self.rank == root
        head, problem = pack(value) if giving else (None, None)
        with self._calling():
            self._agree(f"broadcast(root={root})", problem or self._problem_of_root(root))
            if self.size == 1:
                return value
            heads = [head]
            dist.broadcast_object_list(heads, src=root, group=self._open_groups().control)
            assert heads[0] is not None
            if "pickle" in heads[0]:
                return value if giving else pickle.loads(heads[0]["pickle"])
            tensor = flatten(value) if giving else self._room(heads[0])
            moving = self._loadable(tensor)
            if moving.numel():
                dist.broadcast(view_bytes(moving), src=root, group=self._carrier(moving))
            return value if giving else moving.to(tensor.device)

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """Give rank ``root`` what every rank has.

        All ranks first make sure that they mean the same call with the same ``root``. Tensors
        travel through host memory.

        Args:
            value: A tensor, of any dtype and shape on each rank, or anything that can be pickled.
            root: The rank that gets the values.

        Returns:
            On ``root`` the values in the order of the ranks, None elsewhere. A tensor that was on
            an accelerator arrives on ``root``'s own device.

        Raises:
            ArgumentError: On every rank: a value cannot be pickled, there is no such rank, or the
                ranks differ.
            RankError: Another rank failed or left.
        """
        head, problem = pack(value)
        with self._calling():
            self._agree(f"gather(root={root})", problem or self._problem_of_root(root))
            if self.size == 1:
                return [value]
            taking = self.rank == root
            heads: list[Any] | None = [None] * self.size if taking else None
            dist.gather_object(head, heads, dst=root, group=self._open_groups().control)
            if heads is not None:
                return [
                    value if rank == root else self._receive(each, rank)
                    for rank, each in enumerate(heads)
                ]
            if isinstance(value, torch.Tensor) and value.numel():
                data = view_bytes(flatten(value).cpu())
                dist.send(data, dst=root, group=self._open_groups().control)
            return None

    def barrier(self) -> None:
        """Wait until every rank has come here.

        Raises:
            ArgumentError: On every rank: some are about to make another call.
            RankError: Another rank failed or left.
        """
        with self._calling():
            self._agree("barrier()", None)

    def print(self, *values: Any, **options: Any) -> None:
        """Print on the main rank only; takes what the builtin ``print`` takes."""
        if self.is_main:
            print(*values, **{"flush": True, **options})

    def close(self) -> None:
        """Leave the world; every rank does, and rank 0 waits until all others have.

        Does nothing the second time. A process that ends without it leaves on its way out.

        Raises:
            RankError: Another rank failed.
        """
        if self._closed or os.getpid() != self._process:
            return
        self._entered -= 1
        if self._entered == 0:
            self.leave_now()

    def leave_now(self) -> None:
        """Leave however many times this world was joined; for the end of the process."""
        self._closed = True
        # gloo's threads end with the last reference to its group; at the interpreter's own end
        # they would meet Python's objects half gone.
        self._groups = None
        self._leave()

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if os.getpid() != self._process:
            return
        ended = isinstance(exception, SystemExit) and exception.code in (None, 0)
        if exception is None or ended or self._guard is None:
            self.close()
            return
        try:
            self._guard.raise_reason(exception)
        finally:
            self.leave_now()

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        """The body of a collective call: errors of communication become the reason for them."""
        self._open_groups()
        if os.getpid() != self._process:
            raise ArgumentError("a forked process is no rank; make the call in the rank itself.")
        if self._guard is None:
            yield
            return
        self._guard.check()
        try:
            yield
        except (RuntimeError, ConnectionError) as error:
            reason = self._guard.explain(error)
            if reason is error:
                raise
            raise reason from error

    def _open_groups(self) -> Groups:
        if self._groups is None:
            raise ArgumentError("this world is closed; make the call before it is, or join again.")
        return self._groups

    def _agree(self, call: str, problem: str | None) -> None:
        agree(call, problem, self.size, self._open_groups().control)

    def _loadable(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor where the data group takes it: on its device, or on the CPU."""
        return tensor if tensor.device.type in self._open_groups().direct else tensor.cpu()

    def _carrier(self, tensor: torch.Tensor) -> Any:
        return (
            self._open_groups().control if tensor.device.type == "cpu" else self._open_groups().data
        )

    def _room(self, head: dict[str, Any]) -> torch.Tensor:
        """An empty tensor for what ``head`` describes, on the device where it arrives."""
        device = self.device.torch if head["moved"] else torch.device("cpu")
        return torch.empty(head["shape"], dtype=head["dtype"], device=device)

    def _receive(self, head: dict[str, Any], rank: int) -> Any:
        if "pickle" in head:
            return pickle.loads(head["pickle"])
        data = torch.empty(head["shape"], dtype=head["dtype"])
        if data.numel():
            dist.recv(view_bytes(data), src=rank, group=self._open_groups().control)
        return data.to(self.device.torch) if head["moved"] else data

    def _problem_of_root(self, root: int) -> str | None:
        if isinstance(root, int) and 0 <= root < self.size:
            return None
        return f"root={root!r} is no rank; give one from 0 to {self.size - 1}."
