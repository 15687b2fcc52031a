# SPDX-License-Identifier: MIT
"""The streaming path on the CPU, where its streams do nothing but its order is the same."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchspan
from torchspan import ArgumentError, _staging
from torchspan._staging import Staging

CPU = torchspan.devices("cpu")[0]


@pytest.fixture(scope="module")
def staging():
    return Staging(CPU, 1)


def multiply(inputs, rows):
    assert len(inputs[0]) == rows
    return [inputs[0] * inputs[1], inputs[0].sum(1)]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), rows=st.integers(0, 200), chunk=st.integers(1, 60))
def test_streaming_gives_what_one_call_gives(staging, data, rows, chunk):
    first = data.draw(st.integers(0, rows))
    last = data.draw(st.integers(first, rows))
    x, grid = torch.rand(rows, 5), torch.rand(5)
    outs = [torch.full((rows, 5), torch.nan), torch.full((rows,), torch.nan)]
    before = _staging.CHUNK_BYTES
    _staging.CHUNK_BYTES = chunk * 20
    try:
        staging.run(multiply, [x, grid], [True, False], range(first, last), outs)
    finally:
        _staging.CHUNK_BYTES = before
    for out, wanted in zip(outs, multiply([x, grid], rows), strict=True):
        torch.testing.assert_close(out[first:last], wanted[first:last])
        assert out[:first].isnan().all() and out[last:].isnan().all()


def test_buffers_are_kept_and_follow_new_shapes_and_dtypes(staging):
    for dtype, width in ((torch.float32, 3), (torch.float64, 3), (torch.float32, 7)):
        x = torch.rand(10, width, dtype=dtype)
        outs = [torch.empty_like(x)]
        staging.run(lambda inputs, rows: [inputs[0] + 1], [x], [True], range(10), outs)
        torch.testing.assert_close(outs[0], x + 1)


def test_results_without_a_batch_come_whole(staging, monkeypatch):
    monkeypatch.setattr(_staging, "CHUNK_BYTES", 40)
    x, grid = torch.rand(9, 5), torch.rand(20)
    outs = [torch.empty(9, 5), torch.empty(20)]
    staging.run(
        lambda inputs, rows: [inputs[0] + 1, inputs[1] * 2],
        [x, grid],
        [True, False],
        range(9),
        outs,
    )
    torch.testing.assert_close(outs, [x + 1, grid * 2])


def test_inference_mode_of_the_caller(monkeypatch):
    staging = Staging(CPU, 1)
    with torch.inference_mode():
        x, out = torch.rand(9, 5), torch.empty(9, 5)
        staging.run(lambda inputs, rows: [inputs[0] + 1], [x], [True], range(9), [out])
    torch.testing.assert_close(out, x + 1)
    staging.run(lambda inputs, rows: [inputs[0] + 2], [x], [True], range(9), [out])
    torch.testing.assert_close(out, x + 2)


def test_an_error_on_the_way_arrives_and_the_next_call_works(staging, monkeypatch):
    monkeypatch.setattr(_staging, "CHUNK_BYTES", 40)
    x, out = torch.rand(50, 2), torch.empty(50, 2)
    calls = []

    def fail(inputs, rows):
        calls.append(rows)
        if len(calls) == 4:
            raise RuntimeError("in the middle")
        return [inputs[0]]

    with pytest.raises(RuntimeError, match="in the middle"):
        staging.run(fail, [x], [True], range(50), [out])
    assert len(calls) == 4
    staging.run(lambda inputs, rows: [inputs[0]], [x], [True], range(50), [out])
    assert torch.equal(out, x)


def test_an_error_on_landing_arrives(staging):
    with pytest.raises(RuntimeError, match="shape|size"):
        staging.run(
            lambda inputs, rows: [inputs[0]],
            [torch.rand(9, 2)],
            [True],
            range(9),
            [torch.empty(9, 3)],
        )


def test_callers_take_turns(staging, monkeypatch):
    monkeypatch.setattr(_staging, "CHUNK_BYTES", 64)
    wrong = []

    def call(number):
        x = torch.full((40, 4), float(number))
        out = torch.empty(40, 4)
        for _ in range(10):
            staging.run(lambda inputs, rows: [inputs[0] * 2], [x], [True], range(40), [out])
            if not torch.equal(out, x * 2):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_dropping_it_ends_its_thread():
    before = set(threading.enumerate())
    staging = Staging(CPU, 1)
    (thread,) = set(threading.enumerate()) - before
    del staging
    thread.join(10)
    assert not thread.is_alive()


def test_registering_needs_an_array():
    array = np.zeros(10, np.float32)
    if torch.accelerator.is_available():
        assert torchspan.register(array) and torchspan.unregister(array)
    else:
        assert not torchspan.register(array) and not torchspan.unregister(array)
    for part in (np.zeros((4, 4))[:, :2], np.zeros(9)[::-1], torch.zeros(4, 4).t()):
        with pytest.raises(ArgumentError, match="array is not contiguous.*Register the whole"):
            torchspan.register(part)
    with pytest.raises(ArgumentError, match="array is a list"):
        torchspan.register([1.0])
