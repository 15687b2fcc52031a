# SPDX-License-Identifier: MIT
"""What an example is turned into to compare builds and rows with, and what that shows."""

import pytest
import torch
from torch import Tensor, nn

import torchspan
from torchspan import _log
from torchspan._model_file import _save
from torchspan._model_file._compare import compare_build, rows_independent, run_flat
from torchspan._model_file._example import alike, name_example, spread, vary


def exported(model, example, **options):
    return _save._export(model, name_example(model, example, **options))


class Words(nn.Module):
    """Whole numbers in; every row's result depends on all rows."""

    def __init__(self, mix: bool, size: int = 20):
        super().__init__()
        self.table = nn.Embedding(size, 4)
        self.mix = mix

    def forward(self, words: Tensor) -> Tensor:
        found = self.table(words)
        return found + found.mean(0) if self.mix else found


@pytest.mark.parametrize("word", [0, 5, 19])
@pytest.mark.parametrize(("mix", "independent"), [(True, False), (False, True)])
def test_rows_of_whole_numbers_are_varied_within_the_table(mix, independent, word):
    assert rows_independent(*exported(Words(mix), torch.full((1, 5), word))) is independent


def test_rows_that_cannot_be_told_apart_show_nothing_and_that_is_said(capfd, monkeypatch):
    monkeypatch.setattr(_log, "_said", set())
    only = exported(Words(False, size=1), torch.zeros(1, 5, dtype=torch.int64))
    assert rows_independent(*only) is False
    assert "all rows of the example's 'words' are the same" in capfd.readouterr().err


class Tables(nn.Module):
    """A row holds an index into a table of a hundred, one into a table of three, counted from 1."""

    def __init__(self):
        super().__init__()
        self.many, self.few = nn.Embedding(100, 4), nn.Embedding(3, 4)

    def forward(self, words: Tensor) -> Tensor:
        return self.many(words[:, 0]) + self.few(words[:, 1] - 1)


@pytest.mark.parametrize("example", [[[99, 3], [50, 1]], [[99, 3]], [[0, 1]]])
def test_indices_into_several_tables_stay_within_each(example):
    program, shown = exported(Tables(), torch.tensor(example))
    assert rows_independent(program, shown)
    run = lambda inputs: run_flat(program, name_example(Tables(), inputs[0]))  # noqa: E731
    assert compare_build(program, shown, run, "cpu", torch.device("cpu"), "float32") == 0


class Flagged(nn.Module):
    def forward(self, x: Tensor, flag: Tensor) -> Tensor:
        return x + flag.double().mean(0)


def test_every_input_is_looked_at(capfd):
    """A flag that is 0 in every row of the example mixes the rows where it is not."""
    example = torch.rand(4, 3, dtype=torch.float64), torch.zeros(4, 3, dtype=torch.int64)
    assert rows_independent(*exported(Flagged(), example)) is False
    assert capfd.readouterr().err == ""


WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("value", ["none", "most"])
def test_whole_numbers_of_every_kind_can_differ(dtype, value):
    most = 1 if dtype is torch.bool else torch.iinfo(dtype).max
    given = torch.full((7, 50), most if value == "most" else 0).to(dtype)
    got = spread(name_example(nn.Identity(), given), lambda tried: True)
    assert got.tensors["input"].dtype is dtype and not alike(vary(got, 3))


def test_what_is_not_finite_stays_alone():
    x = torch.rand(7, 50)
    x[:, 0], x[:, 1] = torch.nan, torch.inf
    got = vary(name_example(nn.Identity(), x), 3).tensors["input"]
    assert got[:, 0].isnan().all() and got[:, 1].isinf().all() and got[:, 2:].isfinite().all()
    nothing = name_example(nn.Identity(), torch.full((7, 3), torch.nan))
    assert alike(vary(nothing, 3)) == ["input"]


def test_the_default_device_of_the_caller_is_not_ours():
    example = name_example(nn.Identity(), torch.rand(7, 50))
    words = name_example(nn.Identity(), torch.zeros(7, 50, dtype=torch.int64))
    with torch.device("meta"):
        assert vary(example, 3).tensors["input"].device.type == "cpu"
        assert spread(words, lambda tried: True).tensors["input"].device.type == "cpu"


def odd_tensors():
    x = torch.rand(2, 3)
    return {
        "nested": torch.nested.nested_tensor([x, x[:1]]),
        "jagged": torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged),
        "sparse_coo": x.to_sparse(),
        "sparse_csr": x.to_sparse_csr(),
        "mkldnn": x.to_mkldnn(),
        "quantized": torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "meta": x.to("meta"),
    }


WORDS = {
    "nested": "is a nested tensor.*to_padded_tensor",
    "jagged": "is a nested tensor.*to_padded_tensor",
    "sparse_coo": "has layout torch.sparse_coo.*to_dense",
    "sparse_csr": "has layout torch.sparse_csr.*to_dense",
    "mkldnn": "has layout torch._mkldnn.*to_dense",
    "quantized": "is quantized.*dequantize",
    "meta": "is on the meta device, which holds no values",
}


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_tensors_without_memory_that_can_be_read_are_refused(tmp_path, kind):
    odd = odd_tensors()[kind]
    for name in ("net.pt2", "net.pt"):
        with pytest.raises(torchspan.ArgumentError, match=f"example input 'x' {WORDS[kind]}"):
            torchspan.save(Flagged(), tmp_path / name, {"x": odd, "flag": torch.zeros(2, 3)})
    assert not list(tmp_path.iterdir())
    for devices in ("cpu", "cpu:0,cpu:1"):
        with torchspan.load(Flagged(), devices=devices) as net:
            with pytest.raises(torchspan.ArgumentError, match=f"input 'flag' {WORDS[kind]}"):
                net(torch.rand(2, 3), odd)
            with pytest.raises(torchspan.ArgumentError, match=f"out {WORDS[kind]}"):
                net(torch.rand(2, 3), torch.zeros(2, 3), out=odd)


def test_an_example_that_is_a_conjugate_view_is_one_of_plain_values():
    example = name_example(nn.Identity(), torch.rand(2, 3, dtype=torch.complex64).conj())
    assert not example.tensors["input"].is_conj()
    turned = name_example(nn.Identity(), torch.rand(2, dtype=torch.complex64).conj().imag)
    assert not turned.tensors["input"].is_neg()
