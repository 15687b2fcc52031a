# SPDX-License-Identifier: MIT
"""The line between ranks, with every rank's end in this one process."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from torchspan import RankError
from torchspan._world._failure import Failure
from torchspan._world._hub import Hub
from torchspan._world._rendezvous import open_hub
from torchspan._world._spoke import Endpoint, find_hub


class Lines:
    """The ends of all ranks."""

    def __init__(self, size):
        self.hub, self.endpoint = open_hub(size, one_host=True)
        self.all = [self.hub]
        for rank in range(1, size):
            self.all.append(find_hub(self.endpoint, rank, soon()))

    def meet(self, decide=len):
        with ThreadPoolExecutor(len(self.all)) as pool:
            return list(
                pool.map(lambda line: line.meet({"from": line.rank}, decide, soon()), self.all)
            )

    def close(self):
        for line in reversed(self.all):
            line.close()


def soon(seconds=5.0):
    return time.monotonic() + seconds


def wait_until(condition):
    stop = soon()
    while not condition():
        assert time.monotonic() < stop
        time.sleep(0.01)


@pytest.fixture
def lines(request):
    made = Lines(getattr(request, "param", 3))
    yield made
    made.close()


def test_all_get_what_rank_0_makes_of_everybodys_facts(lines):
    plans = lines.meet(lambda everybody: {"ranks": [facts["from"] for facts in everybody]})
    assert plans == [{"ranks": [0, 1, 2]}] * 3


def test_missing_ranks_are_named(lines):
    lines.all[2].wire.send("facts", facts={})
    with pytest.raises(RankError, match="1 of 3 ranks did not arrive in time: 1. Look"):
        lines.hub.meet({}, len, soon(0.3))
    with pytest.raises(RankError, match="rank 0 answered, but not every rank arrived"):
        lines.all[1].meet({}, len, soon(0.1))


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_the_first_failure_reaches_every_rank_and_stays(lines, failing):
    lines.meet()
    failure = Failure.of(failing, ValueError("too bright"))
    lines.all[failing].report(failure)
    for line in lines.all:
        assert line.wait_failure(5) == failure
    lines.all[0].report(Failure(0, "interrupted"))
    assert all(line.failure == failure for line in lines.all)
    for line in lines.all:
        with pytest.raises(RankError, match=f"rank {failing} failed with ValueError: too bright"):
            line._wait(lambda: False, soon())


@pytest.mark.parametrize("gone", [0, 1])
def test_a_connection_that_ends_without_a_word_is_a_rank_gone(lines, gone):
    lines.meet()
    lines.all[gone].close() if gone == 0 else lines.all[gone].wire.close()
    for line in lines.all:
        if line.rank != gone:
            failure = line.wait_failure(5)
            assert (failure.rank, failure.kind) == (gone, "gone")


def test_leaving_in_order_is_no_failure_and_rank_0_goes_last(lines):
    lines.meet()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lines.hub.leave, ending=False)
        lines.all[2].leave(ending=True)
        lines.all[2].close()
        wait_until(lambda: lines.all[1].ranks_that_left(1) == {0: False, 2: True})
        assert not waiting.done()
        lines.all[1].leave(ending=False)
        waiting.result(5)
    assert all(line.failure is None for line in lines.all)


def test_a_failure_ends_rank_0s_wait(lines):
    lines.meet()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lines.hub.leave, ending=False)
        lines.all[1].wire.close()
        with pytest.raises(RankError, match="rank 1 .*went away"):
            waiting.result(5)


@pytest.mark.parametrize("failing", [0, 2])
def test_the_failed_rank_takes_its_leave_first(lines, failing):
    lines.meet()
    lines.all[failing].report(Failure(failing, "interrupted"))
    for line in lines.all:
        line.wait_failure(5)
    order = []

    def part(line):
        line.farewell(60)
        order.append(line.rank)
        if line.rank == failing:
            line.close()

    started = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(part, lines.all))
    assert order[0] == failing
    assert time.monotonic() - started < 30


def test_a_rank_that_never_says_its_last_word_is_not_waited_for_long(lines):
    lines.meet()
    lines.hub.report(Failure(0, "interrupted"))
    started = time.monotonic()
    lines.hub.farewell(0.3)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("lines", [2], indirect=True)
@pytest.mark.parametrize(
    "said",
    [
        b'{"kind": "hello", "token": "wrong", "rank": 1}\n',
        b'{"kind": "hello", "token": "%s", "rank": 7}\n',
        b'{"kind": "hello", "token": "%s", "rank": "1"}\n',
        b'{"kind": "failure", "rank": 1, "what": "gone", "text": ""}\n',
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b"x" * (1 << 21),
    ],
)
def test_a_stranger_is_shown_out_and_does_no_harm(lines, said):
    said = said.replace(b"%s", lines.endpoint.token.encode())
    with socket.create_connection(("127.0.0.1", lines.hub.port)) as stranger:
        stranger.settimeout(5)
        try:
            stranger.sendall(said)
            answer = stranger.recv(100)
        except ConnectionError:
            answer = b""
        assert answer == b""
    assert lines.meet() == [2, 2]
    assert lines.hub.failure is None


def test_a_server_that_is_no_rank_0_is_passed_over():
    with socket.create_server(("127.0.0.1", 0)) as other:
        endpoint = Endpoint(("127.0.0.1",), (other.getsockname()[1],), "token")
        with ThreadPoolExecutor(1) as pool:
            looking = pool.submit(find_hub, endpoint, 1, soon(0.5))
            other.settimeout(5)
            connection, _ = other.accept()
            connection.sendall(b"220 mail\n")
            with pytest.raises(RankError, match="somebody else answered"):
                looking.result(5)
            connection.close()


def test_a_hub_for_one_host_listens_on_loopback_only():
    near, far = Hub(2, "t", one_host=True), Hub(2, "t", one_host=False)
    assert near.addresses == ["127.0.0.1"]
    assert near._listener.getsockname()[0] == "127.0.0.1"
    assert far.addresses[-1] in ("127.0.0.1", "::1")
    near.close()
    far.close()
