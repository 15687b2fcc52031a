# SPDX-License-Identifier: MIT
"""The Fortran and C twins of the examples, built and run line by line as their READMEs say."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.native.fortran_programs import call, install

EXAMPLES = Path(__file__).parents[2] / "examples"
INPUTS = ["input on {} 0: [  0.0,  1.0,  2.0,  3.0,  4.0]",
          "input on {} 1: [  1.0,  2.0,  3.0,  4.0,  5.0]"]  # fmt: skip
OUTPUTS = ["output on {} 0: [  0.0,  2.0,  4.0,  6.0,  8.0]",
           "output on {} 1: [  2.0,  4.0,  6.0,  8.0, 10.0]"]  # fmt: skip
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1"}  # fmt: skip


class Shell:
    """A copy of the examples, and the environment that a user has activated."""

    def __init__(self, folder, prefix):
        self.folder = shutil.copytree(EXAMPLES, folder)
        self.environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PREFIX": str(prefix), "OMP_NUM_THREADS": "1", **MPI,
        }  # fmt: skip

    def type(self, example, *lines):
        """Type lines in at an example's folder; return what they printed, line by line."""
        script = "set -e\n" + "\n".join(lines)
        done = call(["bash", "-c", script], cwd=self.folder / example, **self.environ)
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def shell(run_folder, tmp_path_factory):
    return Shell(tmp_path_factory.mktemp("shell") / "examples", install(run_folder))


BUILD = (
    "mkdir build",
    "cd build",
    'cmake .. -DCMAKE_PREFIX_PATH="$PREFIX" -DCMAKE_BUILD_TYPE=Release',
    "cmake --build .",
)


@pytest.mark.slow
def test_simplenet_from_the_sources_and_nothing_is_built_twice(shell):
    from_sources = BUILD[2].replace("$PREFIX", "$(python -m torchspan --cmake-dir)")
    built = shell.type("simplenet", "python3 pt2ts.py", *BUILD[:2], from_sources, BUILD[3])
    assert any("Building CXX" in line for line in built)
    for program in ("simplenet_infer_fortran", "simplenet_infer_c"):
        run = f"build/{program} saved_simplenet_model_cpu.pt"
        assert shell.type("simplenet", run) == ["  0.0,  2.0,  4.0,  6.0,  8.0"]
    again = shell.type("simplenet", "cd build", BUILD[3])
    assert again
    assert not any("Building" in line or "Linking" in line for line in again)


@pytest.mark.parametrize(("kind", "pretend"), [("cpu", 0), ("cuda", 2), ("xpu", 2), ("mps", 1)])
def test_multi_gpu(shell, kind, pretend):
    model = f"saved_multigpu_model_{kind}.pt"
    count = 1 if kind == "mps" else 2
    switch = f"export TORCHSPAN_PRETEND_{kind.upper()}={pretend}" if pretend else "true"
    if not (shell.folder / "multi_gpu" / "build").exists():
        shell.type("multi_gpu", *BUILD)
    shell.type("multi_gpu", switch, f"python3 pt2ts.py --device_type {kind}")
    for program in ("multigpu_infer_fortran", "multigpu_infer_c"):
        said = shell.type("multi_gpu", switch, "cd build", f"./{program} {kind} ../{model}")
        assert said == [line.format("device") for line in INPUTS[:count] + OUTPUTS[:count]]


def test_gpu_arrays(shell):
    shell.type("gpu_arrays", "export TORCHSPAN_PRETEND_CUDA=2", "python3 gpu_arrays.py", *BUILD)
    for program in ("gpu_arrays_infer_fortran", "gpu_arrays_infer_c"):
        run = f"./{program} ../double.pt2"
        said = shell.type("gpu_arrays", "export TORCHSPAN_PRETEND_CUDA=2", "cd build", run)
        assert said == ["[  0.0,  8.0, 16.0, 24.0, 32.0]"]


@pytest.mark.mpi
def test_mpi(shell):
    if shutil.which("mpiexec") is None or shutil.which("mpifort") is None:
        pytest.skip("mpifort is missing: sudo apt-get install openmpi-bin libopenmpi-dev")
    shell.type("mpi", "python3 pt2ts.py", *BUILD)
    for program in ("mpi_infer_fortran", "mpi_infer_c"):
        run = f"mpiexec -np 2 ./{program} ../saved_simplenet_model_cpu.pt"
        said = shell.type("mpi", "cd build", run)
        assert sorted(said) == [line.format("rank") for line in INPUTS + OUTPUTS]
    shell.type("mpi", "cp ../simplenet/Makefile .", "make")
    said = shell.type("mpi", "mpiexec -np 2 ./mpi_infer_fortran saved_simplenet_model_cpu.pt")
    assert sorted(said) == [line.format("rank") for line in INPUTS + OUTPUTS]


def test_make_builds_what_it_says(shell):
    shell.type("multi_gpu", "cp ../simplenet/Makefile .", "make",
               "python3 pt2ts.py --device_type cpu")  # fmt: skip
    said = shell.type("multi_gpu", "./multigpu_infer_c cpu saved_multigpu_model_cpu.pt")
    assert said[-1] == OUTPUTS[1].format("device")
    assert shell.type("multi_gpu", "make --silent") == []
    shell.type("multi_gpu", "make clean")
    assert not (shell.folder / "multi_gpu" / "multigpu_infer_c").exists()


def test_an_absent_file_stops_the_program(shell):
    shell.type("simplenet", "make")
    program = shell.folder / "simplenet" / "simplenet_infer_fortran"
    done = call([program, "nothing.pt"], status=1)
    assert "torchspan: there is no model file nothing.pt" in done.stderr


@pytest.mark.parametrize("folder", ["simplenet", "multi_gpu", "gpu_arrays", "mpi"])
def test_readmes_name_their_programs(folder):
    readme = (EXAMPLES / folder / "README.md").read_text(encoding="utf-8")
    for path in (EXAMPLES / folder).glob("*_infer_*.[cf]*"):
        assert re.search(rf"{path.stem}\b", readme), path
