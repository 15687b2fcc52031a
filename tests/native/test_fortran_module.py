# SPDX-License-Identifier: MIT
"""The Fortran module: programs that check every kind, rank, layout and error by themselves."""

import json
import re
import sys
import warnings

import pytest

from tests.native.fortran_programs import Installed, call, install, write_models


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is what is tested
        return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=["gfortran", "flang-22"])
def fortran(request, run_folder, tmp_path_factory):
    prefix = install(run_folder, request.param)
    return Installed(prefix, tmp_path_factory.mktemp("programs"), request.param)


def test_every_kind(fortran, models):
    said = fortran.run("kinds", models / "twice.pt").stdout.splitlines()
    assert said[:9] == ["int8", "int16", "int32", "int64", "real32", "real64", "complex32",
                        "complex64", "c_bool"]  # fmt: skip
    assert said[-1] == "nothing was written"


def test_every_rank_and_layout(fortran, models):
    said = fortran.run("layouts", models / "order.pt", models / "twice.pt").stdout
    for line in (
        "the first dimension is the model's last",
        "ranks 1 to 7, in place",
        "a strided output",
        "backwards",
        "a section of an assumed-size array",
    ):
        assert line in said.splitlines()


@pytest.mark.parametrize("devices", ["cpu", "cpu:0,cpu:1"])
def test_several_arrays_loops_requests_and_shared_models(fortran, models, devices):
    said = fortran.run("sharing", models / "plus_minus.pt", devices).stdout.splitlines()
    for line in ("two inputs and two outputs", "ten calls", "a request",
                 "assigned models share one"):  # fmt: skip
        assert line in said
    description = json.loads(said[-1].removeprefix("json "))
    assert [each["name"] for each in description["inputs"]] == ["a", "b"]


def test_errors_have_codes_and_messages(fortran, models):
    files = [models / name for name in ("simplenet.pt2", "truncated.pt", "raising.pt")]
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


@pytest.mark.parametrize("name", ["simplenet.pt", "simplenet.pt2"])
def test_ten_threads_call_one_model(fortran, models, name):
    if fortran.compiler != "gfortran":
        pytest.skip("its OpenMP library is a package of its own")
    said = fortran.run("threads", models / name, options=["-fopenmp"]).stdout
    assert said == "ten threads\n"


def test_a_second_build_compiles_nothing(fortran):
    def times():
        files = [path for path in fortran.prefix.rglob("*") if path.is_file()]
        return {
            path: path.stat().st_mtime_ns for path in files if path.suffix in (".so", ".mod", ".o")
        }

    before = times()
    install_again = [sys.executable, "-m", "torchspan", "build", "--prefix", fortran.prefix]
    assert "Built with " in call([*install_again, "--fc", fortran.compiler]).stdout
    assert len(before) > 20
    assert times() == before
