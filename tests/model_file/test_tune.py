# SPDX-License-Identifier: MIT
"""Builds for few rows and for many: kept where they win, chosen by the batch, right everywhere."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import nn

import torchspan
from tests.zoo import ZOO
from torchspan._errors import BuildError
from torchspan._model_file import _save, _tune
from torchspan._model_file._archive import BuildFiles
from torchspan._model_file._capability import cpu_level
from torchspan._model_file._example import name_example
from torchspan._model_file._target import FEW, MANY, Target, compiler_options
from torchspan._model_file._tune import ANY, SIZES, pick_ranges

CPU = torchspan.devices("cpu")[0]


@pytest.fixture(scope="module")
def tuned(model_file):
    return model_file("tuned")


def test_each_build_has_the_batches_at_which_it_wins(tuned):
    found = torchspan.describe(tuned)
    builds = {build.name: build for build in found.builds}
    level = cpu_level().name
    assert builds.pop("model").for_any
    # Weights packed for oneDNN win on many rows of this net on every x86 CPU that torch runs on.
    assert set(builds) <= {f"cpu-{level}-few", f"cpu-{level}-many"}
    few, many = builds.get(f"cpu-{level}-few"), builds.get(f"cpu-{level}-many")
    assert few is None or (few.min_batch == 1 and few.max_batch in SIZES)
    assert many is None or (many.min_batch in SIZES and many.max_batch is None)
    assert all(build.error < 1e-5 for build in builds.values())


def test_every_batch_gives_what_eager_gives(tuned):
    model = ZOO["tuned"].make()
    with torchspan.load(tuned, "cpu") as net, torch.no_grad():
        for rows in (0, 1, 2, 7, 16, 17, 24, 64, 300, 5000):
            x = torch.randn(rows, 64)
            torch.testing.assert_close(net(x), model(x), atol=1e-5, rtol=1e-4)


def times(**figures):
    return {ANY if name == "any" else name: values for name, values in figures.items()}


def test_ranges_are_unbroken_runs_of_clear_wins():
    assert pick_ranges(times(any=[10, 10, 10], few=[5, 9, 11], many=[30, 10, 8])) == {
        FEW: (1, SIZES[1]),
        MANY: (SIZES[2], None),
    }
    assert pick_ranges(times(any=[10, 10, 10], few=[9.9, 5, 5], many=[5, 9.9, 9.9])) == {}
    assert pick_ranges(times(any=[10, 10], many=[5, 5])) == {MANY: (1, None)}


@given(some.data())
def test_ranges_never_overlap(data):
    count = data.draw(some.integers(1, len(SIZES)))
    drawn = some.lists(some.floats(0.1, 9), min_size=count, max_size=count)
    figures = {name: data.draw(drawn) for name in ("any", "few", "many")}
    ranges = pick_ranges(times(**figures))
    if FEW in ranges and MANY in ranges:
        assert ranges[FEW][1] < ranges[MANY][0]
    for name, (low, high) in ranges.items():
        inside = [i for i, size in enumerate(SIZES[:count]) if low <= size <= (high or size)]
        assert all(figures[name][i] < figures["any"][i] for i in inside)


def test_a_build_that_comes_out_wrong_is_left_out_and_said(tmp_path, monkeypatch, model_file):
    right = _tune.build_checked

    def wrong(program, example, target, *rest):
        if target.tuned == MANY:
            raise BuildError("the build differs from eager")
        return right(program, example, target, *rest)

    monkeypatch.setattr(_tune, "build_checked", wrong)
    monkeypatch.setattr(_tune, "_worth_trying", lambda *_: [MANY])
    told = []
    path = tmp_path / "net.pt2"
    found = torchspan.save(nn.Linear(3, 2), path, torch.rand(1, 3), progress=told.append)
    assert [build.name for build in found.builds] == ["model"]
    assert f"without cpu-{cpu_level().name}-many: the build differs from eager" in told


def test_nothing_is_tried_where_it_cannot_gain(monkeypatch):
    told = []
    monkeypatch.setattr(_tune, "multiplies_by", lambda program: frozenset(program))
    monkeypatch.setattr(_tune, "count_weights", lambda program: 5000 * len(program))
    assert _tune._worth_trying([], told.append) == []
    assert _tune._worth_trying(["convolution"], told.append) == [MANY]
    assert _tune._worth_trying(["matrix", "convolution"], told.append) == [FEW, MANY]
    assert told == []
    monkeypatch.setattr(_tune, "MOST_WEIGHTS", 9999)
    assert _tune._worth_trying(["matrix", "convolution"], told.append) == []
    assert told == ["one build only: the model's 10000 weights would be stored again in each"]
    monkeypatch.setattr(_tune, "LEAST_WEIGHTS", 5001)
    assert _tune._worth_trying(["matrix"], told.append) == []


def test_products_with_weights_are_found_in_the_graph():
    def kinds(model, *example):
        return _tune.multiplies_by(torch.export.export(model, example))

    assert kinds(nn.Linear(2, 3), torch.rand(1, 2)) == {"matrix"}
    assert kinds(nn.Conv1d(1, 1, 2), torch.rand(1, 1, 4)) == {"convolution"}
    assert kinds(nn.ReLU(), torch.rand(1, 2)) == set()


def test_what_the_compiler_is_told():
    plain = compiler_options(Target(CPU), 100)
    assert plain == {"aot_inductor.package": True, "cpp.dynamic_threads": True}
    one_row = compiler_options(Target(CPU, rows=1), 100)
    assert one_row["cpp.threads"] == 1 and one_row["max_autotune"] and one_row["freezing"]
    large = compiler_options(Target(CPU, rows=4096), 1 << 20)
    assert large == {**plain, "freezing": True}
    assert compiler_options(Target(CPU, tuned=MANY), 100) == {**plain, "freezing": True}
    assert compiler_options(Target(CPU, tuned=FEW), 100)["cpp.threads"] == 1
    # Packed weights are for the CPU that packed them.
    if cpu_level().name != "baseline":
        assert "freezing" not in compiler_options(Target(CPU, "baseline", rows=1), 100)
    assert compiler_options(Target(CPU, precision="bfloat16"), 100) == plain


def test_only_the_machines_own_level_and_any_batch_are_tuned(monkeypatch, mlp_file):
    plain, one_row = (BuildFiles(each, ()) for each in torchspan.describe(mlp_file).builds)
    tried = []

    def build(program, example, target, *rest):
        return plain if target.rows is None else one_row

    monkeypatch.setattr(_save, "build_checked", build)
    monkeypatch.setattr(_save, "tuned_builds", lambda *given: tried.append(given[2]) or [])

    def build_all(*targets, tuned=True):
        model = nn.Linear(3, 2)
        shown = name_example(model, torch.rand(2, 3), batched=True, shared=(), dynamic=None)
        return _save._build_all(None, shown, targets, tuned, True, print)

    assert build_all(Target(CPU), Target(CPU, rows=1)) == [plain, one_row]
    assert tried == [Target(CPU)]
    build_all(Target(CPU), tuned=False)
    build_all(Target(CPU, precision="bfloat16"))
    if cpu_level().name != "baseline":
        build_all(Target(CPU, "baseline"))
    assert tried == [Target(CPU)]
