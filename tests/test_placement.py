# SPDX-License-Identifier: MIT
import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchspan import Placement, PlacementError, find_placement

VECTORS = json.loads(
    (Path(__file__).parent / "data" / "launcher_vectors.json").read_text(encoding="utf-8")
)["vectors"]

TABLE = json.loads(
    (Path(__file__).parents[1] / "src" / "torchspan" / "launchers.json").read_text(encoding="utf-8")
)["launchers"]


@st.composite
def places(draw):
    """Numbers that a launcher might give: rank, size, local rank and local size."""
    size = draw(st.integers(1, 10_000))
    local_size = draw(st.integers(1, size))
    return {
        "rank": draw(st.integers(0, size - 1)),
        "size": size,
        "local_rank": draw(st.integers(0, local_size - 1)),
        "local_size": local_size,
    }


def variables(row, place, pick):
    """The variables by which the launcher of ``row`` tells ``place``; ``pick`` chooses names."""
    return {pick(names): str(place[key]) for key in place if (names := row[key])}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector):
    if "error" in vector:
        with pytest.raises(PlacementError) as caught:
            find_placement(vector["environ"])
        assert vector["error"] in str(caught.value)
        return
    found = find_placement(vector["environ"])
    local_size = -1 if found.local_size is None else found.local_size
    assert (found.rank, found.size, found.local_rank, local_size, found.launcher) == (
        vector["rank"],
        vector["size"],
        vector["local_rank"],
        vector["local_size"],
        vector["launcher"],
    )
    if "job" in vector:
        assert found.job == vector["job"]


def test_every_launcher_of_the_table_has_a_vector():
    names = {row["name"] for row in TABLE}
    assert names <= {vector.get("launcher") for vector in VECTORS}


def test_the_process_environment_is_read_at_each_call(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert find_placement() == Placement()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert find_placement().launcher == "torchrun"


@given(st.sampled_from(TABLE), places(), st.data())
def test_whatever_a_launcher_says_is_found(row, place, data):
    environ = variables(row, place, lambda names: data.draw(st.sampled_from(names)))
    found = find_placement(environ)
    assert (found.rank, found.size, found.local_rank) == (
        place["rank"],
        place["size"],
        place["local_rank"],
    )
    if row["local_size"]:
        assert found.local_size == place["local_size"]
    else:
        assert found.local_size == (1 if place["size"] == 1 else None)


@given(st.sampled_from(TABLE), places(), st.sampled_from(["rank", "size", "local_rank"]))
def test_half_set_variables_are_an_error_that_names_what_is_missing(row, place, missing):
    environ = variables(row, place, lambda names: names[0])
    del environ[row[missing][0]]
    assume(any(name in environ for name in row["marks"]))
    with pytest.raises(PlacementError) as caught:
        find_placement(environ)
    assert f"the variables of {row['name']} are half set" in str(caught.value)
    assert row[missing][0] in str(caught.value).split("but ")[1]


@given(
    st.sampled_from(TABLE),
    st.fixed_dictionaries(
        {key: st.integers(0, 5) for key in ("rank", "size", "local_rank", "local_size")}
    ),
)
def test_numbers_that_contradict_each_other_are_never_believed(row, place):
    environ = variables(row, place, lambda names: names[0])
    try:
        found = find_placement(environ)
    except PlacementError as error:
        assert "contradict each other" in str(error)
    else:
        local_size = found.size if found.local_size is None else found.local_size
        assert 0 <= found.rank < found.size
        assert 0 <= found.local_rank < local_size <= found.size


@given(
    st.dictionaries(
        st.sampled_from(
            sorted(
                {
                    name
                    for row in TABLE
                    for key in row
                    for name in row[key]
                    if isinstance(row[key], list)
                }
            )
        ),
        st.one_of(st.integers(-1, 4).map(str), st.text(max_size=3)),
    )
)
def test_any_environment_gives_a_placement_or_a_placement_error(environ):
    try:
        found = find_placement(environ)
    except PlacementError as error:
        assert str(error).endswith(".")
    else:
        assert found.rank < found.size
