# SPDX-License-Identifier: MIT
import pytest
import torch

from torchspan import ArgumentError

DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.uint8, torch.int8, torch.int32, torch.int64, torch.complex64, torch.complex128),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_reduce_sums_every_dtype(world, dtype):
    given = torch.arange(6).reshape(2, 3).to(dtype) + world.rank
    total = world.all_reduce(given)
    ranks = sum(range(world.size))
    assert total.dtype == dtype
    assert torch.equal(total, (torch.arange(6).reshape(2, 3) * world.size + ranks).to(dtype))
    assert torch.equal(given, torch.arange(6).reshape(2, 3).to(dtype) + world.rank)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("sum", lambda values: sum(values)),
        ("mean", lambda values: sum(values) / len(values)),
        ("max", max),
        ("min", min),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_all_reduce_by_each_op(world, op, wanted, check):
    values = [3.0 - 2 * rank for rank in range(world.size)]
    result = world.all_reduce(torch.tensor(values[world.rank]), op, check=check)
    assert result.shape == ()
    assert result.item() == pytest.approx(wanted(values))


def test_all_reduce_takes_views_empty_tensors_and_parameters(world):
    base = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(world.all_reduce(base.T[1:]), base.T[1:] * world.size)
    assert world.all_reduce(torch.empty(0, 3)).shape == (0, 3)
    weight = torch.nn.Parameter(torch.ones(2))
    reduced = world.all_reduce(weight, "mean")
    assert reduced.tolist() == [1, 1]
    assert not reduced.requires_grad


@pytest.mark.parametrize(
    ("tensor", "op", "message"),
    [
        (torch.ones(2), "avg", "op='avg' is none of 'sum', 'mean', 'max', 'min'"),
        ([1.0], "sum", "takes a tensor, not list"),
        (torch.ones(2, dtype=torch.bool), "sum", "takes no bool tensors"),
        (torch.ones(2, dtype=torch.complex64), "max", "has no meaning for complex64"),
        (torch.ones(2, dtype=torch.int32), "mean", "would be cut to whole numbers"),
        (torch.ones(2).to_sparse(), "sum", "takes no sparse_coo tensors"),
    ],
)
def test_a_wrong_argument_on_one_rank_raises_on_all(world, tensor, op, message):
    wrong = world.rank == world.size - 1
    with pytest.raises(ArgumentError, match=message) as caught:
        world.all_reduce(tensor if wrong else torch.ones(2), op if wrong else "sum")
    if world.size > 1:
        assert str(caught.value).startswith(f"rank {world.size - 1}: ")
    world.barrier()


def test_a_wrong_argument_raises_without_the_check_too(world):
    with pytest.raises(ArgumentError, match="op='avg'"):
        world.all_reduce(torch.ones(2), "avg", check=False)


def test_different_shapes_raise_on_all_ranks(world):
    if world.size == 1:
        assert world.all_reduce(torch.ones(1)).tolist() == [1]
        return
    last = world.size - 1
    with pytest.raises(ArgumentError) as caught:
        world.all_reduce(torch.ones(3 if world.rank == last else 2))
    others = "rank 0" if last == 1 else f"ranks 0 to {last - 1}"
    assert f"{others}: all_reduce(op='sum') of float32 (2,)" in str(caught.value)
    assert f"rank {last}: all_reduce(op='sum') of float32 (3,)" in str(caught.value)
    world.barrier()


def test_different_calls_raise_on_all_ranks(world):
    if world.size == 1:
        world.barrier()
        return
    with pytest.raises(ArgumentError, match=r"rank 0: barrier\(\)"):
        if world.rank == 0:
            world.barrier()
        else:
            world.gather(1)
    world.barrier()


@pytest.mark.parametrize("from_last", [False, True])
def test_broadcast_of_tensors(world, from_last):
    root = world.size - 1 if from_last else 0
    for given in (
        torch.arange(12, dtype=torch.int16).reshape(3, 4).T,
        torch.tensor(True),
        torch.empty(0, 2),
        torch.view_as_complex(torch.ones(3, 2)).conj(),
    ):
        found = world.broadcast(given if world.rank == root else None, root)
        assert found.dtype == given.dtype
        assert torch.equal(found, given)


def test_broadcast_of_objects(world):
    value = {"name": "sample", "sizes": [1, 2], "mask": torch.ones(2, dtype=torch.bool)}
    found = world.broadcast(value if world.is_main else "mine")
    assert found["sizes"] == [1, 2]
    assert found["mask"].tolist() == [True, True]
    assert world.broadcast() is None


def test_gather_of_objects(world):
    root = world.size - 1
    found = world.gather(("rank", world.rank), root)
    if world.rank == root:
        assert found == [("rank", rank) for rank in range(world.size)]
    else:
        assert found is None


def test_gather_of_tensors_of_any_shape_and_dtype(world):
    dtypes = [torch.float32, torch.bool, torch.int16]
    given = torch.ones(world.rank, 2, dtype=dtypes[world.rank % 3])
    found = world.gather(given)
    if world.is_main:
        assert [tuple(each.shape) for each in found] == [(rank, 2) for rank in range(world.size)]
        assert [each.dtype for each in found] == [dtypes[r % 3] for r in range(world.size)]
        assert all(each.all() for each in found)


def test_gather_of_tensors_and_objects_together(world):
    found = world.gather(torch.tensor([1.5]) if world.is_main else "nothing yet")
    if world.is_main:
        assert found[0].item() == 1.5
        assert found[1:] == ["nothing yet"] * (world.size - 1)


@pytest.mark.parametrize("call", ["broadcast", "gather"])
def test_what_cannot_be_sent_raises_on_all_ranks(world, call):
    with pytest.raises(ArgumentError, match="function cannot be sent to another rank"):
        getattr(world, call)(lambda: 0)
    with pytest.raises(ArgumentError, match=f"root={world.size} is no rank"):
        getattr(world, call)(0, root=world.size)
    world.barrier()


def test_only_the_main_rank_prints(world, capsys):
    world.print("step", 3, sep="=")
    assert capsys.readouterr().out == ("step=3\n" if world.is_main else "")


def test_many_calls_keep_in_step(world):
    for turn in range(20):
        world.barrier()
        assert world.broadcast(turn if world.is_main else None) == turn
        assert world.all_reduce(torch.tensor([turn])).item() == turn * world.size
