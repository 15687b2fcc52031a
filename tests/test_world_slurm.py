# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchspan import PlacementError
from torchspan._world._slurm import find_hosts, parse_hosts

NAMES = st.text(alphabet="abcxyz-_.", min_size=1, max_size=5)


@st.composite
def spans(draw):
    """A piece in brackets, and the numbers it stands for."""
    texts, numbers = [], []
    for _ in range(draw(st.integers(1, 3))):
        width = draw(st.integers(1, 4))
        first = draw(st.integers(0, 30))
        last = draw(st.one_of(st.none(), st.integers(first, first + 12)))
        begin = str(first).zfill(width)
        texts.append(begin if last is None else f"{begin}-{str(last).zfill(width)}")
        stop = first if last is None else last
        numbers += [str(number).zfill(len(begin)) for number in range(first, stop + 1)]
    return f"[{','.join(texts)}]", numbers


@st.composite
def items(draw):
    """One item of a list, and the hosts it stands for."""
    text = draw(NAMES)
    hosts = [text]
    for _ in range(draw(st.integers(0, 2))):
        piece, numbers = draw(spans())
        tail = draw(st.one_of(st.just(""), NAMES))
        text += piece + tail
        hosts = [host + number + tail for host in hosts for number in numbers]
    return text, hosts


@given(st.lists(items(), min_size=1, max_size=4))
def test_a_list_spreads_out_to_its_hosts_in_order(parts):
    text = ",".join(item for item, _ in parts)
    assert parse_hosts(text) == [host for _, hosts in parts for host in hosts]


@given(st.text(alphabet="ab[]-,0123456789 ", max_size=20))
def test_any_text_gives_hosts_or_a_placement_error(text):
    try:
        hosts = parse_hosts(text)
    except PlacementError as error:
        assert "no list of hosts" in str(error)
    else:
        assert hosts
        assert all(hosts)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu[01-03,07],login1", ["gpu01", "gpu02", "gpu03", "gpu07", "login1"]),
        ("r[1-2]n[08-09]-ib", ["r1n08-ib", "r1n09-ib", "r2n08-ib", "r2n09-ib"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        (" single ", ["single"]),
    ],
)
def test_lists_as_slurm_writes_them(text, hosts):
    assert parse_hosts(text) == hosts


@pytest.mark.parametrize("text", ["", "a,,b", "a,", "a[1", "a]1", "a[]", "a[3-1]", "a[x]", "a[1,]"])
def test_nonsense_is_an_error_that_names_the_variable(text):
    with pytest.raises(PlacementError, match="SLURM_NODELIST=.* Start the program with srun"):
        parse_hosts(text, "SLURM_NODELIST")


def test_a_list_beyond_all_measure_is_an_error_and_takes_no_memory():
    for text in ("a[0-99999999]", "a[0-99999]b[0-99999]"):
        with pytest.raises(PlacementError):
            parse_hosts(text)


def test_the_step_goes_before_the_job():
    environ = {"SLURM_JOB_NODELIST": "a[1-4]", "SLURM_STEP_NODELIST": "a[3-4]"}
    assert find_hosts(environ) == ["a3", "a4"]
    assert find_hosts({"SLURM_NODELIST": "b1", "SLURM_STEP_NODELIST": ""}) == ["b1"]
    assert find_hosts({}) == []
