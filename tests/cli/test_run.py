# SPDX-License-Identifier: MIT
"""``torchspan run`` in one process: what comes out, what is refused, and going on."""

import os

import numpy as np
import pytest
import torch

from tests import zoo
from torchspan.cli._journal import Journal

AFFINE = """
import os
from pathlib import Path

calls = Path(os.environ.get("CALLS", os.devnull))

def forward(x):
    with calls.open("a") as file:
        file.write(f"{float(x[0, 0]):.0f}\\n" if len(x) else "none\\n")
    if Path("stop").exists() and len(x) and x[0, 0] >= float(Path("stop").read_text()):
        raise ValueError("told to stop")
    return x * 2 + 1
"""
TWO = """
def forward(x, grid):
    return x + grid, (x * grid).sum(1)
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A script model, and an input whose rows begin with their number."""
    (tmp_path / "affine.py").write_text(AFFINE)
    (tmp_path / "two.py").write_text(TWO)
    x = np.random.default_rng(5).normal(size=(50, 3)).astype(np.float32)
    x[:, 0] = np.arange(50)
    np.save("x.npy", x)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path


def left(folder):
    """What lies in the folder beside the models and the inputs."""
    return sorted(p.name for p in folder.iterdir() if p.name.startswith(("y", "z")))


def affine():
    return np.load("x.npy") * 2 + 1


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1", "all"])
@pytest.mark.parametrize("batch", ["7", "1000"])
def test_a_saved_model_gives_what_the_module_gives(torchspan_command, model_file, devices, batch):
    x = torch.randn(100, 64)
    np.save("x.npy", x.numpy())
    model = model_file("mlp")
    words = ("run", model, "x.npy", "-o", "y.npy", "--devices", devices, "--batch", batch)
    done = torchspan_command(*words)
    assert (done.status, done.err) == (0, "")
    with torch.no_grad():
        wanted = zoo.ZOO["mlp"].make()(x).numpy()
    np.testing.assert_allclose(np.load("y.npy"), wanted, atol=1e-5)


def test_several_inputs_and_outputs_with_a_shared_one(torchspan_command, model_file):
    given = {"field": torch.randn(9, 2, 5, 6), "forcing": torch.randn(9, 3), "grid": torch.rand(6)}
    for name, tensor in given.items():
        np.save(f"{name}.npy", tensor.numpy())
    outputs = ("tendency", "score", "kind")
    words = [word for name in outputs for word in ("-o", f"{name}.npy")]
    inputs = [f"{name}.npy" for name in given]
    done = torchspan_command("run", model_file("columns"), *inputs, *words, "--batch", "4")
    assert (done.status, done.err) == (0, "")
    with torch.no_grad():
        wanted = zoo.ZOO["columns"].make()(**given)
    for name in outputs:
        found = np.load(f"{name}.npy")
        assert found.dtype == wanted[name].numpy().dtype
        np.testing.assert_allclose(found, wanted[name].numpy(), atol=1e-5)


def test_torchscript_is_run(torchspan_command, model_file):
    x = torch.randn(20, 64)
    np.save("x.npy", x.numpy())
    done = torchspan_command("run", model_file("script"), "x.npy", "-o", "y.npy", "--batch", "6")
    assert done.status == 0
    with torch.no_grad():
        wanted = zoo.ZOO["script"].make()(x).numpy()
    np.testing.assert_allclose(np.load("y.npy"), wanted, atol=1e-5)


def test_rows_that_depend_on_each_other_stay_together(torchspan_command, model_file):
    x = np.random.default_rng(1).normal(size=(40, 3))
    np.save("x.npy", x)
    model = model_file("mixing")
    done = torchspan_command("run", model, "x.npy", "-o", "y.npy", "--devices", "cpu:0,cpu:1")
    assert done.status == 0
    np.testing.assert_allclose(np.load("y.npy"), x - x.mean(0))
    done = torchspan_command("run", model, "x.npy", "-o", "z.npy", "--batch", "10")
    assert done.status == 1
    assert "blocks of 10 rows would give another result" in done.err


def test_what_a_script_gives_and_the_summary(torchspan_command, files):
    done = torchspan_command("run", "affine.py", "x.npy", "-o", "y.npy", "--batch", "8")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("y.npy: 50 rows, in ")
    assert " on cpu:0: " in done.out
    assert done.out.endswith(" MB/s written\n")
    np.testing.assert_array_equal(np.load("y.npy"), affine())
    assert left(files) == ["y.npy"]
    assert torchspan_command("run", "affine.py", "x.npy", "-o", "z.npy", "--quiet").out == ""


def test_shared_inputs_of_a_model_that_does_not_say_so(torchspan_command, files):
    np.save("grid.npy", np.arange(3, dtype=np.float32))
    words = ("run", "two.py", "x.npy", "grid.npy", "-o", "y.npy", "-o", "z.npy", "--batch", "8")
    done = torchspan_command(*words, "--shared", "grid", "--devices", "cpu:0,cpu:1")
    assert (done.status, done.err) == (0, "")
    np.testing.assert_array_equal(np.load("y.npy"), np.load("x.npy") + np.load("grid.npy"))
    assert np.load("z.npy").shape == (50,)
    assert torchspan_command(*words, "--overwrite").err.startswith(
        "torchspan: error: the inputs have different numbers of rows: x.npy has 50, grid.npy has 3"
    )
    done = torchspan_command(*words, "--overwrite", "--shared", "mesh")
    assert "--shared names mesh, but its inputs are x, grid." in done.err


@pytest.mark.parametrize("change", [np.asfortranarray, lambda x: x.astype(">f4")])
def test_any_order_and_byte_order_of_the_input(torchspan_command, files, change):
    np.save("x.npy", change(np.load("x.npy")))
    assert torchspan_command("run", "affine.py", "x.npy", "-o", "y.npy", "--batch", "8").status == 0
    np.testing.assert_array_equal(np.load("y.npy"), affine())
    assert np.load("y.npy").dtype == np.dtype("=f4")


def test_no_rows_at_all(torchspan_command, files, model_file):
    np.save("x.npy", np.empty((0, 3), np.float32))
    assert torchspan_command("run", "affine.py", "x.npy", "-o", "y.npy").status == 0
    assert np.load("y.npy").shape == (0, 3)
    np.save("x.npy", np.empty((0, 64), np.float32))
    assert torchspan_command("run", model_file("mlp"), "x.npy", "-o", "z.npy").status == 0
    assert np.load("z.npy").shape == (0, 64)
    assert left(files) == ["y.npy", "z.npy"]


def refused(command, *words):
    done = command("run", *words)
    assert (done.status, done.out) == (1, "")
    lines = done.err.splitlines()
    assert all(line.startswith("torchspan: ") for line in lines)
    assert [line.startswith("torchspan: error: ") for line in lines].index(True) == len(lines) - 1
    return lines[-1]


def test_inputs_that_do_not_fit_are_named_before_anything_runs(
    torchspan_command, files, model_file
):
    np.save("wide.npy", np.zeros((5, 64)))
    np.save("thin.npy", np.zeros((5, 63), np.float32))
    mlp = model_file("mlp")
    message = refused(torchspan_command, mlp, "wide.npy", "-o", "y.npy")
    assert "wide.npy holds float64, but input 'x' of this model takes float32" in message
    message = refused(torchspan_command, mlp, "thin.npy", "-o", "y.npy")
    assert "thin.npy has shape (5, 63), but input 'x' of this model takes (batch, 64)" in message
    message = refused(torchspan_command, "affine.py", "x.npy", "x.npy", "-o", "y.npy")
    assert "2 files given, but this model takes 1 input (x)" in message
    assert "is no .npy file" in refused(torchspan_command, mlp, "affine.py", "-o", "y.npy")
    assert "cannot be read" in refused(torchspan_command, mlp, "absent.npy", "-o", "y.npy")
    assert "there is no model file absent.pt2" in refused(
        torchspan_command, "absent.pt2", "x.npy", "-o", "y.npy"
    )
    assert not (files / "calls").exists()
    assert left(files) == []


def test_the_number_of_outputs(torchspan_command, files, model_file):
    message = refused(torchspan_command, "affine.py", "x.npy", "-o", "y.npy", "-o", "z.npy")
    assert "2 outputs were named with -o, but this model gives 1. Give -o FILE once" in message
    np.save("x.npy", np.zeros((5, 64), np.float32))
    message = refused(torchspan_command, model_file("mlp"), "x.npy", "-o", "y.npy", "-o", "z.npy")
    assert "this model gives 1 (y)" in message
    assert left(files) == []


def test_results_without_rows_are_refused(torchspan_command, files):
    (files / "norm.py").write_text("def forward(x):\n    return x.norm()\n")
    message = refused(torchspan_command, "norm.py", "x.npy", "-o", "y.npy")
    assert "the model gives () for 2 rows" in message


def test_files_in_each_others_way(torchspan_command, files):
    message = refused(torchspan_command, "affine.py", "x.npy", "-o", "x.npy", "--overwrite")
    assert "x.npy is read, so it cannot be an output" in message
    message = refused(torchspan_command, "affine.py", "x.npy", "-o", "affine.py", "--overwrite")
    assert "affine.py is read" in message
    message = refused(torchspan_command, "two.py", "x.npy", "x.npy", "-o", "y.npy", "-o", "./y.npy")
    assert "two outputs have the same name" in message
    message = refused(torchspan_command, "affine.py", "x.npy", "-o", "absent/y.npy")
    assert "there is no folder absent to write y.npy into" in message


def test_an_output_that_is_there_is_only_replaced_when_asked(torchspan_command, files):
    (files / "y.npy").write_bytes(b"precious")
    message = refused(torchspan_command, "affine.py", "x.npy", "-o", "y.npy")
    assert "y.npy is there already" in message
    assert (files / "y.npy").read_bytes() == b"precious"
    words = ("run", "affine.py", "x.npy", "-o", "y.npy", "--overwrite")
    assert torchspan_command(*words).status == 0
    np.testing.assert_array_equal(np.load("y.npy"), affine())


def test_options_that_make_no_sense(torchspan_command, files):
    words = ("affine.py", "x.npy", "-o", "y.npy")
    assert "precision 'float8' is not known" in refused(
        torchspan_command, *words, "--precision", "float8"
    )
    assert "is of no known kind" in refused(torchspan_command, *words, "--devices", "tpu")
    done = torchspan_command("run", *words, "--batch", "0")
    assert (done.status, "'0' is not a whole number from 1 up" in done.err) == (2, True)
    assert left(files) == []


def stopped(command, files, row=24):
    """A run that failed at the block of ``row``."""
    (files / "stop").write_text(str(row))
    done = command("run", "affine.py", "x.npy", "-o", "y.npy", "--batch", "8")
    assert done.status == 1
    assert "told to stop" in done.err
    (files / "stop").unlink()
    assert left(files) == ["y.npy.part", "y.npy.torchspan-run"]


def test_a_run_that_failed_goes_on_where_it_was(torchspan_command, files):
    stopped(torchspan_command, files)
    (files / "calls").unlink()
    done = torchspan_command("run", "affine.py", "x.npy", "-o", "y.npy")
    assert (done.status, done.err) == (0, "torchspan: going on: 24 of 50 rows are done.\n")
    assert "y.npy: 50 rows, 26 of them now, in " in done.out
    # The first rows tell what a script gives, then come the blocks of 8 that were left.
    assert set((files / "calls").read_text().split()) == {"0", "24", "32", "40", "48"}
    np.testing.assert_array_equal(np.load("y.npy"), affine())
    assert left(files) == ["y.npy"]


def test_an_interrupted_run_of_other_things_is_refused(torchspan_command, files):
    stopped(torchspan_command, files)
    words = ("affine.py", "x.npy", "-o", "y.npy")
    message = refused(torchspan_command, *words, "--batch", "9")
    assert "goes by blocks of 8 rows, and --batch says 9" in message
    message = refused(torchspan_command, *words, "--precision", "bfloat16")
    assert "its precision is float32" in message
    (files / "other.npy").write_bytes((files / "x.npy").read_bytes()[:-12])
    np.save("other.npy", np.load("x.npy")[:49])
    message = refused(torchspan_command, "affine.py", "other.npy", "-o", "y.npy")
    assert "an interrupted run of y.npy is another one: other.npy has changed" in message
    os.utime("affine.py", (1, 1))
    message = refused(torchspan_command, *words)
    assert "affine.py has changed. Start over with --restart" in message
    done = torchspan_command("run", *words, "--restart")
    assert (done.status, done.err) == (0, "")
    np.testing.assert_array_equal(np.load("y.npy"), affine())


def test_other_outputs_than_the_interrupted_run_had_are_refused(torchspan_command, files):
    stopped(torchspan_command, files)
    np.save("grid.npy", np.arange(3, dtype=np.float32))
    words = ("two.py", "x.npy", "grid.npy", "-o", "y.npy", "-o", "z.npy", "--shared", "grid")
    message = refused(torchspan_command, *words)
    assert "two.py has changed; it has other inputs; it writes y.npy" in message


def test_a_part_that_is_gone_or_changed_is_refused(torchspan_command, files):
    stopped(torchspan_command, files)
    words = ("affine.py", "x.npy", "-o", "y.npy")
    np.save(files / "other", np.zeros((50, 4), np.float32))
    (files / "other.npy").replace(files / "y.npy.part")
    assert "somebody changed it" in refused(torchspan_command, *words)
    (files / "y.npy.part").unlink()
    message = refused(torchspan_command, *words)
    assert "y.npy.part, which an interrupted run wrote, is gone" in message


def test_a_journal_of_another_kind_is_refused_and_restarted(torchspan_command, files):
    (files / "y.npy.torchspan-run").write_text("hello")
    words = ("affine.py", "x.npy", "-o", "y.npy")
    assert "is no journal that this torchspan can read" in refused(torchspan_command, *words)
    assert torchspan_command("run", *words, "--restart").status == 0
    assert left(files) == ["y.npy"]


def test_an_output_that_came_while_the_run_was_interrupted_is_kept(torchspan_command, files):
    stopped(torchspan_command, files)
    (files / "y.npy").write_bytes(b"precious")
    words = ("affine.py", "x.npy", "-o", "y.npy")
    assert "y.npy is there already" in refused(torchspan_command, *words)
    assert torchspan_command("run", *words, "--overwrite").status == 0
    np.testing.assert_array_equal(np.load("y.npy"), affine())


def test_a_run_killed_between_two_new_names_is_finished(torchspan_command, files, monkeypatch):
    np.save("grid.npy", np.arange(3, dtype=np.float32))
    words = ("two.py", "x.npy", "grid.npy", "-o", "y.npy", "-o", "z.npy", "--shared", "grid")
    real = os.replace
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "remove", lambda self: os.kill)
        assert torchspan_command("run", *words).status == 0
    real("z.npy", "z.npy.part")
    assert left(files) == ["y.npy", "y.npy.torchspan-run", "z.npy.part"]
    done = torchspan_command("run", *words)
    assert (done.status, done.err) == (0, "torchspan: going on: 50 of 50 rows are done.\n")
    assert left(files) == ["y.npy", "z.npy"]


def test_two_runs_of_one_output_do_not_mix(torchspan_command, files):
    stopped(torchspan_command, files)
    other = Journal(files / "y.npy.torchspan-run")
    other.lock()
    message = refused(torchspan_command, "affine.py", "x.npy", "-o", "y.npy")
    assert "another run is writing this output" in message
    other.close()


def test_a_folder_that_may_not_be_written(torchspan_command, files, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "y.npy.torchspan-run")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        message = refused(torchspan_command, "affine.py", "x.npy", "-o", "y.npy")
    assert message == "torchspan: error: y.npy.torchspan-run: Permission denied."


def test_an_input_larger_than_what_is_kept_in_memory(torchspan_command, tmp_path):
    """A GiB is read, and a few blocks of it are held at a time; the file has holes, not numbers."""
    (tmp_path / "sums.py").write_text(
        "from pathlib import Path\n"
        "def forward(x):\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    held = next(line.split()[1] for line in lines if line.startswith('RssAnon'))\n"
        "    with open('held', 'a') as file:\n"
        "        file.write(held + '\\n')\n"
        "    return x.sum(1)\n"
    )
    header = {"descr": "<f4", "fortran_order": False, "shape": (1024, 1 << 18)}
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + (1 << 30))
    done = torchspan_command("run", "sums.py", "x.npy", "-o", "y.npy", "--devices", "cpu")
    assert done.status == 0, done.err
    assert not np.load("y.npy").any()
    held = [int(line) / 1024 for line in (tmp_path / "held").read_text().split()]
    assert len(held) >= 16
    assert max(held) - held[0] < 512
