# SPDX-License-Identifier: MIT
"""Open a model file on devices and call it: check, split, run on all of them, gather in order."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from torchspan import _accelerator
from torchspan._arguments import Call, Checker, apart, check_out, torch_dtype
from torchspan._devices import Device, DeviceSpec, parse_devices
from torchspan._errors import ArgumentError, ModelError
from torchspan._model_file import Description, TensorSpec, describe
from torchspan._replica import Replica
from torchspan._runners import Form, Options, open_runners
from torchspan._split import split_rows
from torchspan._staging import write
from torchspan._workers import share_cores

__all__ = ["Model", "load"]

_Shapes = list[tuple[torch.dtype, tuple[int, ...]]]


def load(
    model: str | Path | nn.Module,
    devices: DeviceSpec = "all",
    *,
    precision: str = "float32",
    shared: Iterable[str | int] = (),
    split: bool | None = None,
    compile: bool = True,
) -> Model:
    """Open a model on one or many devices.

    Args:
        model: A ``.pt2`` or ``.pt`` file, a ``.py`` script with a function ``forward``, or a
            module, which is copied to each device as it is now and evaluates there.
        devices: Where to run: ``"all"``, ``"rank"``, ``"cuda"``, ``"cuda:0,cuda:1"``,
            ``"cpu:0,cpu:1"`` (virtual CPUs).
        precision: ``"bfloat16"`` or ``"tf32"`` runs a float32 model in lower precision where a
            device gains from it, float32 in and out; the expected error is said once.
        shared: Names or positions of inputs without a batch dimension; a ``.pt2`` file says so
            itself.
        split: Whether a batch may be split over devices. A ``.pt2`` file knows whether its rows
            are independent; of other models it is assumed. False runs each call whole, on the
            devices in turn.
        compile: False runs a ``.pt2`` file's program eagerly, without a build.

    Returns:
        The model, to be called like the module.

    Raises:
        ArgumentError: An option makes no sense.
        BuildError: The file has no build for a device, and none could be compiled here.
        DeviceError: A device is not there.
        ModelFileError: The file cannot be opened.
    """
    if isinstance(model, nn.Module):
        source, description = model, Description(path=None, kind="module", inputs=_names(model))
    else:
        source, description = None, describe(model)
    return Model(
        description,
        parse_devices(devices),
        Options(precision, compile),
        source=source,
        shared=frozenset(shared),
        split=split,
    )


class Model:
    """A model open on one or many devices; made by :func:`load`.

    ``model(x)`` checks the inputs, splits the rows over the devices, runs them at the same time
    and gives the results in order, on the device that the inputs came from; numpy arrays in give
    numpy arrays out. It may be called from several threads, and closed by ``with``.

    Attributes:
        description: What the model says of itself.
        devices: Where it runs.
    """

    def __init__(
        self,
        description: Description,
        devices: Sequence[Device],
        options: Options,
        *,
        source: nn.Module | None,
        shared: frozenset[str | int],
        split: bool | None,
    ) -> None:
        runners, self.description = open_runners(source, description, devices, options)
        self.devices = list(devices)
        self._check = Checker(self.description, shared)
        independent = self.description.rows_independent is not False
        self._splits = independent if split is None else split and independent
        cores = share_cores(len(devices))
        row_bytes = (self.description.row_bytes or 0) if self._splits else None
        self._replicas = [
            Replica(device, runner, cores, row_bytes)
            for device, runner in zip(devices, runners, strict=True)
        ]
        self._only = self._replicas[0] if len(devices) == 1 else None
        self._turn = count()
        self._learned: dict[tuple[Any, ...], _Shapes | str] = {}
        self._closed = False
        self._handing_out = threading.Lock()

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Run the model on a batch.

        Args:
            inputs: Tensors or numpy arrays, in the order of the description.
            out: Arrays of the results' dtypes and shapes to write them into, instead of new ones.

        Returns:
            A tensor or array, or a tuple or dict of them, as the model returns.

        Raises:
            ArgumentError: An input does not fit; it is named.
            DeviceMemoryError: A device has too little memory.
            ModelError: The model failed, or is closed.
        """
        if self._only is None:
            if any(each.works_here for each in self._replicas):
                raise ModelError(
                    "the model was called from its own worker (a future's done-callback runs "
                    "there), which would wait for itself for ever. Use submit there."
                )
            return self._start(inputs, out).result()
        call = self._checked(inputs)
        return self._run_whole(self._only, call, out)

    def submit(self, *inputs: Any, out: Any = None) -> Future[Any]:
        """Start the model on a batch and go on; the inputs must not change before it is done.

        Args:
            inputs: As in a call.
            out: As in a call.

        Returns:
            A future of what a call would return.

        Raises:
            ArgumentError: An input does not fit; it is named.
            ModelError: The model is closed.
        """
        return self._start(inputs, out)

    def close(self) -> None:
        """Wait for what is under way and let go of the devices; calling it again does nothing."""
        with self._handing_out:
            closed, self._closed = self._closed, True
        if not closed:
            for replica in self._replicas:
                replica.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self.description.path or self.description.kind
        return f"<torchspan.Model {name} on {', '.join(map(str, self.devices))}>"

    def _checked(self, inputs: Sequence[Any]) -> Call:
        if self._closed:
            raise _closed_error()
        return self._check(inputs)

    def _batched(self, call: Call) -> list[bool]:
        return [self._check.is_batched(index) for index in range(len(call.tensors))]

    def _start(self, inputs: Sequence[Any], out: Any) -> Future[Any]:
        """Hand a call's parts to the workers of their devices."""
        call = self._checked(inputs)
        parts = self._parts(call)
        # A worker's streams know nothing of the caller's: each side waits for the other's work.
        homes = [each.device for each in call.tensors]
        _accelerator.settle(*homes)
        if len(parts) == 1:
            replica = parts[0][0]
            future: Future[Any] = Future()
            whole = partial(self._run_whole, replica, call, out)
            self._put([(replica, partial(_fulfil, future, _settled, whole, replica, homes))])
            return future
        shapes = self._output_shapes(call)
        if isinstance(shapes, str):
            raise ModelError(shapes)
        outs = self._outputs(call, shapes, out)
        inputs = call.tensors if out is None else apart(call.tensors, outs)
        batched = self._batched(call)
        gathered = _Gathered(len(parts), lambda form: self._give(call, outs, form, out))
        tasks = []
        for replica, rows in parts:
            part = partial(replica.run, inputs, batched, rows, outs)
            task = partial(_settled, part, replica, homes)
            tasks.append((replica, partial(gathered.run, replica, task)))
        self._put(tasks)
        return gathered.future

    def _put(self, tasks: Sequence[tuple[Replica, Callable[[], None]]]) -> None:
        """Hand out all tasks or none: a worker runs nothing that comes after its end."""
        with self._handing_out:
            if self._closed:
                raise _closed_error()
            workers = [replica.worker for replica, _ in tasks]
            for worker, (_, task) in zip(workers, tasks, strict=True):
                worker.put(task)

    def _parts(self, call: Call) -> list[tuple[Replica, range | None]]:
        if call.rows is None or not self._splits or len(self._replicas) == 1 or call.rows < 2:
            turn = next(self._turn) % len(self._replicas)
            return [(self._replicas[turn], None if call.rows is None else range(call.rows))]
        ranges = split_rows(call.rows, len(self._replicas))
        return [(each, rows) for each, rows in zip(self._replicas, ranges, strict=True) if rows]

    def _run_whole(self, replica: Replica, call: Call, out: Any) -> Any:
        """Run a call on one device, in this thread."""
        rows = None if call.rows is None else range(call.rows)
        outs: list[Tensor] | None = None
        if out is not None or (rows and self._worth_outputs(replica, call, len(rows))):
            shapes = self._output_shapes(call)
            if not isinstance(shapes, str):
                outs = self._outputs(call, shapes, out)
        inputs = call.tensors
        if out is not None and outs is not None:
            # Chunks of the input are still read when the first results are written.
            inputs = apart(inputs, outs)
        results = replica.run(inputs, self._batched(call), rows, outs)
        if out is not None and outs is None:
            found = [(each.dtype, tuple(each.shape)) for each in results]
            outs = self._outputs(call, found, out)
            for place, result in zip(outs, apart(results, outs), strict=True):
                write(place, result)
        elif call.numpy and outs is None:
            # What numpy holds read-only must not come back as an array to write to.
            results = apart(results, inputs)
        return self._give(call, results, replica.runner.form, out)

    def _worth_outputs(self, replica: Replica, call: Call, rows: int) -> bool:
        """Whether outputs are made before they are computed: the rows are chunked or streamed."""
        if self.description.outputs is None or not self._splits:
            return False
        return replica.chunks(rows) or replica.device.torch != call.tensors[0].device

    def _outputs(self, call: Call, shapes: _Shapes, out: Any) -> list[Tensor]:
        """Where the results go: the caller's memory, or memory of our own."""
        if out is not None:
            specs, form = self.description.outputs, self._replicas[0].runner.form
            names = [spec.name for spec in specs] if specs else form.names if form else ()
            return check_out(out, shapes, names)
        device = call.tensors[0].device
        return [torch.empty(shape, dtype=dtype, device=device) for dtype, shape in shapes]

    def _output_shapes(self, call: Call) -> _Shapes | str:
        """Dtype and shape of each result, as the file says or as few rows tell; or why not."""
        specs = self.description.outputs
        if specs is not None and all(None not in (spec.shape or (None,)) for spec in specs):
            return [(torch_dtype(str(spec.dtype)), _fill(spec, call.sizes)) for spec in specs]
        batched = self._batched(call)
        key = tuple(
            (each.dtype, each.shape[1:] if has_rows else each.shape)
            for each, has_rows in zip(call.tensors, batched, strict=True)
        )
        learned = self._learned.get(key)
        if learned is None:
            learned = self._learn(call, batched)
            if call.rows is None or call.rows > 1:
                self._learned[key] = learned
        if isinstance(learned, str):
            return learned
        rows = () if call.rows is None else (call.rows,)
        return [(dtype, (*rows, *rest)) for dtype, rest in learned]

    def _learn(self, call: Call, batched: Sequence[bool]) -> _Shapes | str:
        """Run few rows for the results' dtypes and shapes without the batch, or say why not.

        Of one number of rows alone, a constant result that is as long would look like rows.
        """
        results: list[Tensor] = []
        most = call.rows
        sizes = (most,) if most is None or most < 2 else (1, 2) if most == 2 else (2, 3)
        for rows in sizes:
            # Copies: a module that writes to its input must not do so twice.
            inputs = [
                (each[:rows] if rows is not None and has_rows else each).clone()
                for each, has_rows in zip(call.tensors, batched, strict=True)
            ]
            few = None if rows is None else range(rows)
            results = self._replicas[0].run(inputs, batched, few, None)
            if rows is not None and any(not y.ndim or len(y) != rows for y in results):
                shapes = ", ".join(str(tuple(each.shape)) for each in results)
                return (
                    f"the model gave {shapes} for {rows} row{'s' * (rows != 1)}, so its results "
                    "cannot be gathered row by row. Load it with split=False, or on one device."
                )
        skip = 0 if call.rows is None else 1
        return [(each.dtype, tuple(each.shape[skip:])) for each in results]

    def _give(self, call: Call, results: Sequence[Tensor], form: Form | None, out: Any) -> Any:
        if out is not None:
            return out
        assert form is not None
        home = call.tensors[0].device if call.tensors else torch.device("cpu")
        here = [each if each.device == home else each.to(home) for each in results]
        return form.build([_as_numpy(each) for each in here] if call.numpy else here)


class _Gathered:
    """The parts of one call on their way; the last one to end answers for all."""

    def __init__(self, parts: int, finish: Any) -> None:
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()
        self._left = parts
        self._finish = finish
        self._failure: BaseException | None = None
        self._lock = threading.Lock()

    def run(self, replica: Replica, task: Any) -> None:
        try:
            task()
        except BaseException as error:
            self._failure = self._failure or error
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if not last:
            return
        if self._failure is not None:
            self.future.set_exception(self._failure)
            return
        _fulfil(self.future, self._finish, replica.runner.form)


def _closed_error() -> ModelError:
    return ModelError("the model is closed. Open it again with torchspan.load.")


def _settled(run: Callable[[], Any], replica: Replica, homes: Sequence[torch.device]) -> Any:
    result = run()
    _accelerator.settle(replica.device.torch, *homes)
    return result


def _fulfil(future: Future[Any], call: Any, *arguments: Any) -> None:
    if future.running() or future.set_running_or_notify_cancel():
        try:
            result = call(*arguments)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


def _fill(spec: TensorSpec, sizes: dict[str, int]) -> tuple[int, ...]:
    shape = spec.shape or ()
    return tuple(size if isinstance(size, int) else sizes[str(size)] for size in shape)


def _as_numpy(tensor: Tensor) -> Any:
    try:
        return tensor.resolve_conj().resolve_neg().numpy()
    except TypeError as error:
        raise ArgumentError(
            f"the model gives {str(tensor.dtype).removeprefix('torch.')}, which numpy has not. "
            "Call it with torch tensors."
        ) from error


def _names(model: nn.Module) -> tuple[TensorSpec, ...] | None:
    """The inputs of a module whose ``forward`` takes a certain number of them."""
    parameters = inspect.signature(model.forward).parameters.values()
    plain = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    if any(each.kind not in plain or each.default is not each.empty for each in parameters):
        return None
    return tuple(TensorSpec(each.name) for each in parameters)
