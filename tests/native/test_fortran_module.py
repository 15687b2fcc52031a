# SPDX-License-Identifier: MIT
"""The Fortran module: programs that check every kind, rank, layout and error by themselves."""

import json
import os
import re
import warnings
from pathlib import Path

import pytest
import torch

from tests.native.fortran_programs import (
    COMPILERS,
    Installed,
    build_command,
    call,
    in_array_form,
    install,
    write_models,
)  # fmt: skip
from tests.native.test_c_script import BROKEN, SCRIPTS, write


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is what is tested
        return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=COMPILERS)
def fortran(request, run_folder, tmp_path_factory):
    prefix = install(run_folder, request.param)
    return Installed(prefix, tmp_path_factory.mktemp("programs"), request.param)


def test_every_kind(fortran, models):
    said = fortran.run("kinds", models / "twice.pt").stdout.splitlines()
    assert said[:9] == ["int8", "int16", "int32", "int64", "real32", "real64", "complex32",
                        "complex64", "c_bool"]  # fmt: skip
    assert said[9:11] == ["scalars", "a scalar truth"]
    assert said[-1] == "nothing was written"


def test_every_rank_and_layout(fortran, models):
    said = fortran.run("layouts", models / "order.pt", models / "twice.pt").stdout
    for line in (
        "the first dimension is the model's last",
        "ranks 1 to 7, in place",
        "a strided output",
        "backwards",
        "an allocatable array and a pointer",
    ):
        assert line in said.splitlines()


def test_arguments_without_array(fortran, models):
    if fortran.array_form:
        pytest.skip("this compiler's run takes array() alone")
    said = fortran.run("plain", models / "twice.pt").stdout.splitlines()
    assert "a section of an assumed-size array" in said


def test_the_array_form_of_a_program():
    plain = "use torchspan, only: x\ncall a%run(u(1, :), [array(v)], error)\ncall a%run(f(u), v)"
    assert in_array_form(plain) == (
        "use torchspan, only: array, x\ncall a%run([array(u(1, :))], [array(v)], error)\n"
        "call a%run([array(f(u))], [array(v)])"
    )


def test_the_array_form_alone_refuses_plain_arguments(fortran, tmp_path):
    if not fortran.array_form:
        pytest.skip("this compiler's run takes both forms")
    source = tmp_path / "plain.f90"
    source.write_text(
        "use torchspan, only: model_type\ntype(model_type) :: net\nreal :: x(2)\n"
        "call net%run(x, x)\nend\n"
    )
    modules = f"-I{fortran.prefix}/include/torchspan"
    done = call([fortran.compiler, modules, "-fsyntax-only", source], status=1)
    assert "'array_type'" in done.stderr


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_several_arrays_loops_requests_and_shared_models(fortran, models, devices):
    said = fortran.run("sharing", models / "plus_minus.pt", devices).stdout.splitlines()
    for line in ("two inputs and two outputs", "ten calls", "a request",
                 "assigned models share one"):  # fmt: skip
        assert line in said
    description = json.loads(said[-1].removeprefix("json "))
    assert [each["name"] for each in description["inputs"]] == ["a", "b"]


def test_errors_have_codes_and_messages(fortran, models):
    files = [models / name for name in ("simplenet.pt2", "truncated.pt", "raising.pt", "hungry.pt")]
    done = fortran.run("failures", *files)
    assert done.stdout.splitlines()[-1] == "it goes on"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("case", "words", "environ"),
    [
        ("load", "torchspan: ", {}),
        ("load", "missing.pt", {}),
        ("run", "output", {}),
        ("wait", "never submitted", {}),
        ("placement", "RANK", {"RANK": "3", "WORLD_SIZE": "2"}),
    ],
)
def test_without_an_error_argument_the_program_stops(fortran, models, case, words, environ):
    done = fortran.run("stops", case, models / "simplenet.pt2", status=1, **environ)
    assert words in done.stderr
    assert re.search("ERROR STOP:? torchspan: ", done.stderr)
    assert done.stdout == ""


def test_scripts(fortran, models, tmp_path):
    if fortran.array_form:
        pytest.skip("built against a LibTorch, which has no Python")
    for name in ("learning.py", "raising.py"):
        write(tmp_path / name, {**SCRIPTS, **BROKEN}[name])
    scripts = tmp_path / "learning.py", tmp_path / "raising.py"
    done = fortran.run("scripts", *scripts, models / "simplenet.pt2", tmp_path / "saved.pt")
    assert done.stdout.splitlines()[-1] == "it goes on"
    assert done.stderr == ""
    assert set(torch.load(tmp_path / "saved.pt")) == {"weight", "bias"}


def test_placement_and_devices(fortran):
    torchrun = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                "TORCHELASTIC_RUN_ID": "x"}  # fmt: skip
    said = fortran.run("placement", "cpu:1,cpu:0", **torchrun).stdout.splitlines()
    assert said == ["rank 3 of 4, 1 of 2 here, by torchrun", "cpu:1 on cpu", "cpu:0 on cpu"]
    alone = fortran.run("placement", "cpu").stdout.splitlines()
    assert alone == ["rank 0 of 1, 0 of 1 here, by none", "cpu:0 on cpu"]


def test_arrays_on_devices_and_registered_ones(fortran, model_file):
    pretended = {"TORCHSPAN_PRETEND_CUDA": "2"}
    done = fortran.run("device", model_file("script"), "cuda:0", "pretended", **pretended)
    said = done.stdout.splitlines()
    for line in ("registered arrays", "arrays that are said to be on devices", "a stream"):
        assert line in said


@pytest.mark.parametrize("name", ["simplenet.pt", "simplenet.pt2", "simplenet.py"])
def test_ten_threads_call_one_model(fortran, models, name):
    if fortran.array_form and name.endswith(".py"):
        pytest.skip("built against a LibTorch, which has no Python")
    said = fortran.run("threads", models / name, options=["-pthread"]).stdout
    assert said == "ten threads\n"


@pytest.mark.slow
def test_memory_stays_flat(fortran, models):
    pages = int(fortran.run("memory", models / "simplenet.pt2", 100_000).stdout)
    assert pages * os.sysconf("SC_PAGESIZE") < 2 << 20


def test_a_second_build_compiles_nothing(fortran):
    def times():
        files = [path for path in fortran.prefix.rglob("*") if path.is_file()]
        return {
            path: path.stat().st_mtime_ns for path in files if path.suffix in (".so", ".mod", ".o")
        }

    before = times()
    assert "Built with " in call(build_command(fortran.prefix, fortran.compiler)).stdout
    assert len(before) > 20
    assert times() == before


def test_the_library_uses_the_libtorch_that_was_named(fortran):
    said = call(["readelf", "--dynamic", fortran.prefix / "lib" / "libtorchspan.so"]).stdout
    folder = re.search(r"\(RUNPATH\).*\[\$ORIGIN:(.*)\]", said)[1]
    named = fortran.prefix.parent / f"libtorch-{fortran.compiler}" / "lib"
    assert (Path(folder) == named) == fortran.array_form
    assert (Path(folder) / "libtorch_cpu.so").exists()
