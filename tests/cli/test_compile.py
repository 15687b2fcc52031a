# SPDX-License-Identifier: MIT
import shutil

import pytest

from torchspan.cli import compile as command
from torchspan.cli import describe


@pytest.fixture
def compiled(monkeypatch):
    """What the command hands to torchspan.compile, which is not called."""
    calls = []

    def compile_nothing(path, device, **options):
        options.pop("progress")("compiling nothing")
        calls.append((path, device, options))
        return describe.describe(path)

    monkeypatch.setattr(command, "compile", compile_nothing)
    return calls


def test_a_build_is_added_and_printed(torchspan_command, model_file):
    shutil.copy(model_file("mixing"), "net.pt2")
    before = {build.name for build in describe.describe("net.pt2").builds}
    done = torchspan_command("compile", "net.pt2", "--cpu", "baseline")
    assert done.status == 0, done.err
    title, heads, row = done.out.splitlines()
    assert title == "Added to net.pt2"
    assert heads.split()[:3] == ["build", "device", "capability"]
    name, device, capability = row.split()[:3]
    assert (device, capability) == ("cpu", "baseline")
    assert {build.name for build in describe.describe("net.pt2").builds} == before | {name}
    assert f"torchspan: compiling {name}\n" in done.err


def test_every_option_reaches_the_compiler(torchspan_command, model_file, compiled):
    path = model_file("mlp")
    words = ("--no-tune", "--static-batch", "1", "--static-batch", "8", "--precision", "bfloat16")
    done = torchspan_command("compile", path, "--device", "cpu:0", "--cpu", "avx2", *words)
    assert done.status == 0
    assert compiled == [
        (
            str(path),
            "cpu:0",
            {
                "cpu": "avx2",
                "static_batches": [1, 8],
                "tuned": False,
                "precision": "bfloat16",
            },
        )
    ]
    assert done.err == "torchspan: compiling nothing\n"


def test_a_build_that_comes_out_the_same_is_said(torchspan_command, model_file, compiled):
    path = model_file("mlp")
    done = torchspan_command("compile", path)
    assert done.out == f"{path} held these builds already; they came out the same.\n"
    assert compiled[0][1:] == (
        "cpu", {"cpu": None, "static_batches": [], "tuned": True, "precision": "float32"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("absent.pt2",), "there is no model file absent.pt2"),
        (("FILE", "--device", "cuda:5"), "device 'cuda:5' is not there"),
        (("FILE", "--cpu", "sse9"), "cpu 'sse9' is no level"),
        (("FILE", "--precision", "float8"), "precision 'float8' is not known"),
        (("SCRIPT",), "so no build can be added to it"),
    ],
)
def test_what_cannot_be_compiled_is_one_line(torchspan_command, model_file, words, text):
    files = {"FILE": "mlp", "SCRIPT": "script"}
    words = [model_file(files[word]) if word in files else word for word in words]
    done = torchspan_command("compile", *words)
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines()[-1].startswith("torchspan: error: ")
    assert text in done.err
