# SPDX-License-Identifier: MIT
import json
from pathlib import Path

import pytest

from torchspan import Placement, PlacementError, find_placement

VECTORS = json.loads(
    (Path(__file__).parent / "data" / "launcher_vectors.json").read_text(encoding="utf-8")
)["vectors"]


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
    table = Path(__file__).parents[1] / "src" / "torchspan" / "launchers.json"
    names = {row["name"] for row in json.loads(table.read_text(encoding="utf-8"))["launchers"]}
    assert names <= {vector.get("launcher") for vector in VECTORS}


def test_the_process_environment_is_read_at_each_call(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert find_placement() == Placement()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert find_placement().launcher == "torchrun"
