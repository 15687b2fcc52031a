# SPDX-License-Identifier: MIT
"""Models run from C give what plain PyTorch gives, whatever the devices, layouts and batches."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import torch

import torchspan
from tests import zoo
from tests.native.conftest import CMAKE

NAMES = {np.dtype(np.bool_): "bool"}


def argument(path, array, order=""):
    """How the program is told of an array in a file."""
    name = NAMES.get(array.dtype, array.dtype.name)
    return f"{path}:{name}:{'x'.join(map(str, array.shape))}{order}"


@pytest.fixture
def run_model(run_c, tmp_path):
    """Run a model file on arrays from C; gives the outputs, which are like ``expected``."""

    def run(path, devices, inputs, expected, mode="run", orders=None, environ=None):
        orders = orders or "c" * (len(inputs) + len(expected))
        arguments, outputs = [], []
        for index, array in enumerate([*inputs, *expected]):
            file = tmp_path / f"array{index}"
            file.unlink(missing_ok=True)
            if index == len(inputs):
                arguments.append("--")
            if index < len(inputs):
                file.write_bytes(array.tobytes("F" if orders[index] == "f" else "C"))
            else:
                outputs.append((file, array, orders[index].upper()))
            arguments.append(argument(file, array, ":f" if orders[index] == "f" else ""))
        lines = run_c("run", path, devices, mode, *arguments, environ=environ)
        assert lines[0].startswith("0 "), lines
        return [
            np.frombuffer(file.read_bytes(), array.dtype).reshape(array.shape, order=order)
            for file, array, order in outputs
        ]

    return run


@pytest.mark.parametrize("mode", ["run", "submit"])
@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1,cpu:1"])
@pytest.mark.parametrize("rows", [1, 2, 7, 3000])
@pytest.mark.parametrize("kind", ["mlp", "script"])
def test_mlp(run_model, model_file, mlp, kind, rows, devices, mode):
    x = np.random.default_rng(rows).random((rows, 64), dtype=np.float32)
    expected = mlp(torch.from_numpy(x)).detach().numpy()
    (y,) = run_model(model_file(kind), devices, [x], [expected], mode)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [1, 16, 17, 64, 300, 5000, 9001])
def test_builds_for_few_rows_and_for_many(run_model, model_file, mlp, rows, threads):
    x = np.random.default_rng(rows).random((rows, 64), dtype=np.float32)
    expected = mlp(torch.from_numpy(x)).detach().numpy()
    environ = {"OMP_NUM_THREADS": str(threads)}
    (y,) = run_model(model_file("tuned"), "cpu", [x], [expected], environ=environ)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("orders", ["cc", "fc", "cf", "ff"])
@pytest.mark.parametrize("kind", ["mlp", "script"])
@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_layouts(run_model, model_file, mlp, kind, orders, devices):
    x = np.random.default_rng(1).random((500, 64), dtype=np.float32)
    expected = mlp(torch.from_numpy(x)).detach().numpy()
    (y,) = run_model(model_file(kind), devices, [x], [expected], orders=orders)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("orders", ["ccccccc", "fcffcfc"])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_several_inputs_and_outputs(run_model, model_file, rows, devices, orders):
    model = zoo.ZOO["columns"].make()
    draw = np.random.default_rng(2)
    shapes = [(rows, 2, 9, 6), (rows, 3), (6,)]
    inputs = [draw.random(shape, dtype=np.float32) for shape in shapes]
    results = model(*map(torch.from_numpy, inputs))
    expected = [each.detach().numpy() for each in results.values()]
    assert expected[2].dtype == np.int64
    given = run_model(model_file("columns"), devices, inputs, expected, orders=orders)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_disagreeing_sizes(run_c, model_file, tmp_path):
    file = tmp_path / "x"
    file.write_bytes(bytes(4 * 2 * 2 * 8 * 6))
    arrays = [f"{file}:float32:{shape}" for shape in ("2x2x8x6", "3x3", "6")]
    outs = ["float32:2x4x8x6", "float32:2x3", "int64:2"]
    outs = [f"{tmp_path}/y{i}:{each}" for i, each in enumerate(outs)]
    (line,) = run_c("run", model_file("columns"), "cpu", "run", *arrays, "--", *outs)
    assert line.startswith(
        "2 input 'forcing' has 3 in its dimension 0 (batch), where another input has 2;"
    )


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_rows_that_depend_on_each_other_stay_together(run_model, model_file, devices):
    x = np.random.default_rng(3).random((8, 3))
    (y,) = run_model(model_file("mixing"), devices, [x], [x])
    np.testing.assert_allclose(y, x - x.mean(0), rtol=1e-12)


def test_pretended_gpus(run_model, mlp_file, mlp):
    x = np.random.default_rng(4).random((9, 64), dtype=np.float32)
    expected = mlp(torch.from_numpy(x)).detach().numpy()
    environ = {"TORCHSPAN_PRETEND_CUDA": "2"}
    (y,) = run_model(mlp_file, "cuda:0,cuda:1", [x], [expected], environ=environ)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_no_rows(run_model, mlp_file):
    x = np.zeros((0, 64), dtype=np.float32)
    for devices in ("cpu", "cpu:0,cpu:1"):
        for mode in ("run", "submit"):
            (y,) = run_model(mlp_file, devices, [x], [x], mode)
            assert y.shape == x.shape


class Every(torch.nn.Module):
    """A dtype of each kind in and out, whatever the ndim."""

    def forward(self, a, b, c, d):
        return a + 1, ~b, c * 2, d.real.double() - 0.5


def test_dtypes(run_model, tmp_path):
    draw = np.random.default_rng(5)
    inputs = [
        draw.integers(0, 100, (3, 2), dtype=np.int16),
        draw.integers(0, 2, (3,)).astype(np.bool_),
        draw.random((3, 1, 2, 2)),
        draw.random((3, 4)).astype(np.complex64),
    ]
    tensors = tuple(map(torch.from_numpy, inputs))
    expected = [each.numpy() for each in Every()(*tensors)]
    path = tmp_path / "every.pt2"
    torchspan.save(Every(), path, tensors, tuned=False)
    given = run_model(path, "cpu", inputs, expected)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one, other)


class Held(torch.nn.Module):
    """TorchScript that returns a dict, drops nothing out when it evaluates, and takes numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = torch.nn.Dropout(0.9)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": self.drop(x) + y.sum(), "whole": (x * 4).to(torch.int64).t()}


def test_torchscript_of_several_outputs(run_model, tmp_path):
    draw = np.random.default_rng(6)
    x, y = draw.random((4, 3)), draw.random(5)
    path = tmp_path / "held.pt"
    torchspan.save(Held(), path, (torch.from_numpy(x), torch.from_numpy(y)), tuned=False)
    expected = [x + y.sum(), (x * 4).astype(np.int64).T]
    given = run_model(path, "cpu", [x, y], expected)
    np.testing.assert_allclose(given[0], expected[0])
    np.testing.assert_array_equal(given[1], expected[1])


def test_describe(run_c, mlp_file, model_file, tmp_path):
    x = tmp_path / "x"
    x.write_bytes(bytes(256))
    arrays = [f"{x}:float32:1x64", "--", f"{tmp_path}/y:float32:1x64"]
    lines = run_c("run", mlp_file, "cpu", "run", *arrays)
    assert lines[0] == "0 1 1 {"
    told = json.loads("\n".join(lines)[len("0 1 1 ") :])
    assert told == json.loads(torchspan.describe(mlp_file).to_json())
    (line,) = run_c("run", model_file("script"), "cpu", "run", *arrays)
    told = json.loads(line.removeprefix("0 1 -1 "))
    assert told["kind"] == "jit"
    assert [each["name"] for each in told["inputs"]] == ["input"]


def test_one_cache_for_c_and_python(run_model, mlp_file, tmp_path, monkeypatch):
    x = np.ones((2, 64), dtype=np.float32)
    for first, folder in (("c", tmp_path / "one"), ("python", tmp_path / "two")):
        monkeypatch.setenv("TORCHSPAN_CACHE", str(folder))
        made = None
        for turn in (first, "python" if first == "c" else "c"):
            if turn == "c":
                run_model(mlp_file, "cpu", [x], [x])
            else:
                torchspan.load(mlp_file, devices="cpu")(x)
            entries = {each: each.stat().st_ino for each in folder.iterdir()}
            assert {each.name for each in entries} == {
                build.digest for build in torchspan.describe(mlp_file).builds
            }
            assert made is None or made == entries
            made = entries


def test_a_damaged_cache_entry_is_filled_again(run_model, mlp_file, tmp_path, mlp):
    x = np.ones((2, 64), dtype=np.float32)
    expected = mlp(torch.from_numpy(x)).detach().numpy()
    environ = {"TORCHSPAN_CACHE": str(tmp_path / "cache")}
    run_model(mlp_file, "cpu", [x], [x], environ=environ)
    for library in (tmp_path / "cache").glob("*/data/aotinductor/model/*.so"):
        library.write_bytes(b"")
    (y,) = run_model(mlp_file, "cpu", [x], [expected], environ=environ)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_many_processes_fill_one_cache(c_program, mlp_file, tmp_path):
    x = tmp_path / "x"
    x.write_bytes(bytes(256))
    folder = tmp_path / "cache"
    environ = {**os.environ, "TORCHSPAN_CACHE": str(folder)}
    started = [
        subprocess.Popen(
            [
                *(c_program("run"), mlp_file, "cpu", "run"),
                *(f"{x}:float32:1x64", "--", f"{tmp_path}/y{number}:float32:1x64"),
            ],
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for each in started:
        out, _ = each.communicate(timeout=120)
        assert out.startswith("0 "), out
    digests = {build.digest for build in torchspan.describe(mlp_file).builds}
    assert {each.name for each in folder.iterdir()} == digests


@pytest.mark.parametrize("kind", ["mlp", "script"])
@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_a_program_may_end_while_devices_work(run_c, model_file, kind, devices):
    # The program leaves its model and requests on purpose, which a sanitizer calls a leak.
    environ = {"ASAN_OPTIONS": "detect_leaks=0"}
    assert run_c("leave", model_file(kind), devices, environ=environ) == ["under way"]


def test_neither_building_nor_running_needs_python(
    build_without_python, c_program, without_python, mlp_file, tmp_path
):
    for name in ("python", "python3"):
        assert shutil.which(name, path=without_python["PATH"]) is None
    install = [CMAKE, "--install", build_without_python, "--prefix", tmp_path / "prefix"]
    subprocess.run(install, env=without_python, check=True, capture_output=True, timeout=60)
    assert (tmp_path / "prefix" / "lib" / "libtorchspan.so").exists()
    x = tmp_path / "x"
    x.write_bytes(bytes(256))
    done = subprocess.run(
        [
            *(c_program("run"), mlp_file, "cpu", "run"),
            *(f"{x}:float32:1x64", "--", f"{tmp_path}/y:float32:1x64"),
        ],
        env={**without_python, "LD_DEBUG": "files", "LD_LIBRARY_PATH": str(build_without_python)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.startswith("0 1 1 {"), done.stdout
    assert "libtorch_cpu.so" in done.stderr
    assert f"{build_without_python}/libtorchspan.so" in done.stderr
    assert "libpython" not in done.stderr
