# SPDX-License-Identifier: MIT
from dataclasses import replace

import pytest

import torchspan
from torchspan.cli import describe as command


def test_a_file_says_everything(torchspan_command, model_file):
    done = torchspan_command("describe", model_file("columns"))
    assert (done.status, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert "kind PyTorch 2 archive (.pt2)" in text
    assert f"written by torchspan {torchspan.__version__} with torch " in text
    assert "returns dict" in text
    assert "batch may be split yes" in text
    assert "field float32 (batch, 2, ny, 6) batch" in text
    assert "grid float32 (6) shared by all" in text
    assert "kind int64 (batch) batch" in text
    (build,) = command.describe(model_file("columns")).builds
    assert f"{build.name} cpu {build.capability} float32 any {build.torch} " in text


def test_builds_for_some_batches_and_rows_that_depend_on_each_other(torchspan_command, model_file):
    text = " ".join(torchspan_command("describe", model_file("mlp")).out.split())
    assert "x float32 (batch, 64) batch" in text
    assert " float32 any " in text
    assert " float32 1 " in text
    text = " ".join(torchspan_command("describe", model_file("mixing")).out.split())
    assert "batch may be split no: rows depend on each other" in text


def test_json_is_the_description(torchspan_command, model_file):
    path = model_file("columns")
    found = torchspan_command("describe", path, "--json").json
    assert found["path"] == str(path)
    assert found["inputs"][2] == {
        "name": "grid", "dtype": "float32", "shape": [6], "batched": False,
    }  # fmt: skip
    assert [each["name"] for each in found["outputs"]] == ["tendency", "score", "kind"]
    assert found["builds"][0]["device"] == "cpu"
    assert found["rows_independent"] is True


def test_what_torchscript_does_not_say_is_unknown(torchspan_command, model_file):
    done = torchspan_command("describe", model_file("script"))
    text = " ".join(done.out.split())
    assert "kind TorchScript" in text
    assert "input unknown unknown unknown" in text
    assert "Outputs: unknown" in text
    assert "Builds: none" in text
    assert torchspan_command("describe", model_file("script"), "--json").json["outputs"] is None


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("def forward(x, grid):\n    return x", "x unknown unknown unknown grid unknown"),
        ("def forward(*inputs):\n    return inputs", "Inputs: unknown"),
    ],
)
def test_a_script_says_its_inputs_without_being_run(torchspan_command, tmp_path, code, text):
    (tmp_path / "script.py").write_text(f"raise SystemExit\n{code}\n")
    done = torchspan_command("describe", "script.py")
    assert done.status == 0
    assert "kind Python script" in " ".join(done.out.split())
    assert text in " ".join(done.out.split())


def test_limits_of_a_dimension_are_shown(torchspan_command, model_file, monkeypatch):
    found = command.describe(model_file("columns"))
    for limits, text in (({"ny": (4, 128)}, "ny: 4 to 128"), ({"ny": (3, None)}, "ny: 3 up")):
        limited = replace(found, limits=limits)
        monkeypatch.setattr(command, "describe", lambda path, limited=limited: limited)
        assert f"(batch, 2, {text}, 6)" in torchspan_command("describe", "net.pt2").out


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("net.pt2", None, "there is no model file net.pt2"),
        ("net.pt2", b"not an archive", "net.pt2"),
        ("net.py", b"def backward(x):\n    return x\n", "defines no function forward"),
    ],
)
def test_what_is_no_model_file_is_one_line(torchspan_command, tmp_path, name, content, text):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = torchspan_command("describe", name)
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("torchspan: error: ")
    assert text in done.err
