# SPDX-License-Identifier: MIT
"""Each way a call can fail gives a code and a message, prints nothing, and the program goes on."""

import json
import zipfile

import numpy as np
import pytest
import torch

import torchspan

ERRORS = {
    "missing": (5, "there is no model file no/such/file.pt2."),
    "folder": (5, ". is a folder; give a model file."),
    "truncated": (5, "is truncated: it begins as a model file"),
    "no device": (3, "device 'cuda:7' is not there"),
    "no list": (3, "'some thing' is no list of devices"),
    "null load": (2, "path is NULL; give a pointer."),
    "null model": (2, "model is NULL; give a pointer."),
    "null run": (2, "model is NULL"),
    "null submit": (2, "model is NULL"),
    "null request": (2, "request is NULL"),
    "null test": (2, "request is NULL"),
    "null wait": (2, "request is NULL"),
    "null describe": (2, "model is NULL"),
    "null json": (2, "json is NULL"),
    "null counts": (2, "outputs is NULL"),
    "null close": (0, ""),
    "input dtype": (2, "input 'x' has dtype float64; this model takes float32. Convert it"),
    "input lanes": (2, "input 'x' has a dtype of kind 2, 32 bits and 4 lanes"),
    "input size": (2, "input 'x' has shape (2, 65); this model takes (batch, 64). Reshape it"),
    "input negative": (2, "input 'x' has size -2 in its dimension 0"),
    "input rank": (2, "input 'x' has shape (2, 8, 8); this model takes (batch, 64)."),
    "input ndim": (2, "input 'x' has 99 dimensions; from 0 to 16 are possible."),
    "input shape": (2, "input 'x' has no shape"),
    "input data": (2, "input 'x' has no data: its pointer is NULL."),
    "input device": (2, "input 'x' is in the memory of cuda:0, and this model is on cpu:0."),
    "output device": (2, "output 'y' is in the memory of cuda:0, and this model is on cpu:0."),
    "null on a stream": (2, "inputs is NULL; give a pointer."),
    "input count": (2, "2 inputs were given; this model takes 1: x: float32 (batch, 64)."),
    "input null": (2, "inputs is NULL; give a pointer."),
    "output dtype": (2, "output 'y' has dtype int32; this model gives float32."),
    "output rows": (2, "output 'y' has shape (3, 64); the result has (2, 64)."),
    "output size": (2, "output 'y' has shape (2, 63); the result has (2, 64)."),
    "output rank": (2, "output 'y' has shape (2,); the result has (2, 64)."),
    "output strides": (2, "output 'y' has stride 0 in its dimension 0"),
    "output count": (2, "0 outputs were given; this model gives 1: y: float32 (batch, 64)."),
    "raise run": (6, "the model failed on cpu:"),
    "raise submit": (0, ""),
    "raise wait": (6, "too warm by far"),
    "raise close": (0, ""),
    "memory run": (7, " has too little memory for "),
    "memory submit": (0, ""),
    "memory wait": (7, " has too little memory for "),
    "memory close": (0, ""),
    "right": (0, ""),
    "close": (0, ""),
    "closed": (6, "the model is closed. Open it again with tspan_model_load."),
    "close again": (0, ""),
}


class Touchy(torch.nn.Module):
    """Raises, unless all is cold."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.max() > -1):
            raise ValueError("too warm by far")
        return x * 2


class Hungry(torch.nn.Module):
    """Wants more memory than any machine has, unless all is cold."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.max() > -1):
            return x + torch.empty(1 << 50, dtype=x.dtype)[0]
        return x * 2


@pytest.fixture(scope="module")
def bad_files(mlp_file, tmp_path_factory):
    """A truncated file, a model that raises, and one that runs out of memory."""
    folder = tmp_path_factory.mktemp("bad")
    files = [folder / name for name in ("cut.pt2", "touchy.pt", "hungry.pt")]
    files[0].write_bytes(mlp_file.read_bytes()[:-100])
    for path, module in zip(files[1:], (Touchy(), Hungry()), strict=True):
        torchspan.save(module, path, torch.full((2, 64), -2.0))
    return files


def test_every_error(run_c, mlp_file, bad_files):
    seen = set()
    for line in run_c("errors", mlp_file, *bad_files):
        what, code, message = line.split("|")
        expected_code, text = ERRORS[what]
        assert int(code) == expected_code, line
        assert text in message, line
        assert bool(message) == bool(expected_code), line
        seen.add(what)
    assert seen == set(ERRORS)


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_ten_threads_at_once(run_c, mlp_file, devices):
    assert run_c("threads", mlp_file, devices, 7, 50) == ["right"]


def test_ten_threads_share_the_crew_that_runs_large_batches(run_c, model_file):
    environ = {"OMP_NUM_THREADS": "3"}
    assert run_c("threads", model_file("tuned"), "cpu", 7000, 4, environ=environ) == ["right"]


@pytest.mark.parametrize("rows", [1, 5000])
def test_an_index_out_of_range(run_c, model_file, tmp_path, rows):
    arrays = {
        "x": np.zeros((rows, 5), np.float32),
        "word": np.full(rows, 20),
        "place": np.zeros(rows, np.int64),
        "column": np.zeros((rows, 6), np.int64),
    }
    words = []
    for name, array in arrays.items():
        (tmp_path / name).write_bytes(array.tobytes())
        shape = "x".join(map(str, array.shape))
        words.append(f"{tmp_path / name}:{array.dtype.name}:{shape}")
    words += ["--", f"{tmp_path}/y:float32:{rows}x6"]
    # torch puts code into a build that prints what it throws.
    printed = r"(Error: Expected u\d+ >= 1 but received 0\n)+"
    (line,) = run_c("run", model_file("lookup"), "cpu", "run", *words, printed=printed)
    assert line.startswith("6 the model failed on cpu:0: an index is out of range")


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_memory_stays_flat(run_c, mlp_file, devices, sanitize):
    if sanitize:
        pytest.skip("the sanitizers keep freed memory; they look for leaks themselves")
    (grown,) = run_c("memory", mlp_file, devices, 100_000)
    assert int(grown) < 2 << 20


def load_error(run_c, path, devices="cpu", environ=None):
    """The one line that loading ``path`` ends with."""
    (line,) = run_c("run", path, devices, "run", environ=environ)
    code, message = line.split(" ", 1)
    assert int(code) == 5, line
    return message


def altered(mlp_file, path, change):
    """A copy of the file whose description ``change`` has changed."""
    with zipfile.ZipFile(mlp_file) as old, zipfile.ZipFile(path, "w") as new:
        for each in old.infolist():
            data = old.read(each)
            if each.filename.endswith("extra/torchspan.json"):
                data = change(data.decode())
            new.writestr(each.filename, data)
    return path


def changed(key, value):
    def change(text):
        return json.dumps({**json.loads(text), key: value})

    return change


@pytest.mark.parametrize("part", [0.2, 0.9, 0.9999])
def test_a_truncated_file(run_c, mlp_file, tmp_path, part):
    cut = tmp_path / "cut.pt2"
    whole = mlp_file.read_bytes()
    cut.write_bytes(whole[: int(len(whole) * part)])
    assert "is truncated: it begins as a model file" in load_error(run_c, cut)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x05\x06" + b"\xff" * 18])
def test_no_archive(run_c, tmp_path, content):
    path = tmp_path / "net.pt2"
    path.write_bytes(content)
    message = load_error(run_c, path)
    assert "is no model file" in message or "is damaged" in message


def test_a_damaged_record(run_c, mlp_file, tmp_path):
    path = tmp_path / "net.pt2"
    content = bytearray(mlp_file.read_bytes())
    content[content.index(b'"rows_independent"')] ^= 1
    path.write_bytes(content)
    assert "damaged: its record extra/torchspan.json cannot be read" in load_error(run_c, path)


def test_a_damaged_build(run_c, mlp_file, tmp_path):
    digest = "0" * 64
    builds = torchspan.describe(mlp_file).to_dict()["builds"]
    path = altered(
        mlp_file,
        tmp_path / "net.pt2",
        changed("builds", [{**each, "digest": digest} for each in builds]),
    )
    message = load_error(run_c, path, environ={"TORCHSPAN_CACHE": str(tmp_path / "cache")})
    assert "are not those that were saved" in message
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:-1], "makes no sense"),
        (lambda text: text.replace("true", "True"), "expected a value"),
        (lambda text: text.replace('"x"', "7", 1), "a value is not a text"),
        (lambda text: text.replace('"limits"', '"limit"'), "it has no 'limits'"),
        (lambda text: text.replace('"format": 1', '"format": 1.5'), "a number is not a whole one"),
        (lambda text: text.replace('"format": 1', '"format": 01'), "expected a value"),
        (changed("format", 2), "has format 2, written by torchspan"),
        (changed("builds", []), "holds no build for cpu, which cpu:0 needs. Add one: torchspan"),
        (changed("builds", [{}]), "it has no 'name'"),
        (changed("format", [[[[]]] * 3]), "a value is not a number"),
        (lambda _: "[" * 100_000, "nested too deeply"),
        (lambda _: "\xff", "makes no sense"),
    ],
)
def test_a_senseless_description(run_c, mlp_file, tmp_path, change, words):
    message = load_error(run_c, altered(mlp_file, tmp_path / "net.pt2", change))
    assert words in message


def test_a_build_that_this_cpu_cannot_run(run_c, mlp_file, tmp_path):
    builds = torchspan.describe(mlp_file).to_dict()["builds"]
    path = altered(
        mlp_file,
        tmp_path / "net.pt2",
        changed("builds", [{**each, "capability": "avx1024"} for each in builds]),
    )
    message = load_error(run_c, path)
    assert "holds builds for cpu with avx1024, which cpu:0 (" in message
    assert message.endswith("torchspan compile net.pt2 --device cpu")


def test_a_plain_archive_of_torch_and_one_of_weights(run_c, tmp_path):
    plain, weights = tmp_path / "plain.pt2", tmp_path / "weights.pt"
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("plain/archive_format", "pt2")
    torch.save({"weight": torch.ones(2)}, weights)
    assert "was written by plain PyTorch" in load_error(run_c, plain)
    assert "holds weights, no model" in load_error(run_c, weights)


def test_another_archive_and_a_compressed_one(run_c, tmp_path):
    other, packed = (tmp_path / name for name in ("other.pt2", "packed.pt2"))
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("other/file", "text")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/extra/torchspan.json", " " * 100)
    assert "is an archive of another kind" in load_error(run_c, other)
    assert "holds its record extra/torchspan.json compressed" in load_error(run_c, packed)


def test_a_cache_that_others_may_write_to(run_c, mlp_file, tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    message = load_error(run_c, mlp_file, environ={"TORCHSPAN_CACHE": str(folder)})
    assert "belongs to, or may be written by, another user" in message


def test_a_cache_that_cannot_be(run_c, mlp_file, tmp_path):
    file = tmp_path / "file"
    file.touch()
    message = load_error(run_c, mlp_file, environ={"TORCHSPAN_CACHE": str(file)})
    assert f"the cache folder {file} cannot be made: Not a directory" in message


def test_outputs_of_torchscript_that_do_not_fit(run_c, model_file, tmp_path):
    script = model_file("script")
    x = tmp_path / "x"
    x.write_bytes(bytes(4 * 128))
    out = tmp_path / "y"

    def run(devices, outputs, inputs=(f"{x}:float32:2x64",)):
        (line,) = run_c("run", script, devices, "run", *inputs, "--", *outputs)
        return line

    assert run("cpu", [f"{out}:float32:2x63"]) == (
        "2 output 0 has dtype float32 and shape (2, 63); the result has float32 and (2, 64). Give "
        "an array of that dtype and shape."
    )
    assert "dtype float64" in run("cpu", [f"{out}:float64:2x64"])
    assert run("cpu", [f"{out}:float32:2x64"] * 2).startswith(
        "2 2 outputs were given; this model gives 1."
    )
    assert run("cpu:0,cpu:1", [f"{out}:float32:3x64"]).startswith(
        "2 output 0 has shape (3, 64); the arrays before it have 2 rows."
    )
    assert run("cpu", [], inputs=[f"{x}:float32:2x64"] * 2).startswith(
        "2 2 inputs were given; this model takes 1: input"
    )
    assert run("cpu", [f"{out}:float32:2x64"], inputs=[f"{x}:float32:4x32"]).startswith("6 the mo")


def test_a_damaged_script(run_c, model_file, tmp_path):
    path = tmp_path / "net.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("net/code/x.py", "")
    assert f"{path} cannot be read: " in load_error(run_c, path)
