# SPDX-License-Identifier: MIT
"""The Fortran and C twins of the examples, built and run line by line as their READMEs say."""

import os
import re
import shutil
import subprocess
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multi_io", "looping", "batching"])
def test_twins_print_what_python_prints(shell, name):
    (*_, line) = shell.type(name, f"python3 {name}.py")
    shell.type(name, *BUILD)
    for language in ("fortran", "c"):
        assert shell.type(name, f"build/{name}_infer_{language}") == [line]
    shell.type(name, "cp ../simplenet/Makefile .", "make")
    assert shell.type(name, f"./{name}_infer_fortran") == [line]
    assert f"\n{line}\n" in (shell.folder / name / "README.md").read_text(encoding="utf-8")


# What starts a program, and the compilers of its C and its Fortran.
MPIS = {
    "default": ("mpiexec", "mpicc", "mpifort"),
    "mpich": ("mpiexec.mpich", "mpicc.mpich", "mpif90.mpich"),
}


def has_module(compiler, folder):
    """Whether an MPI's Fortran compiler is there, and finds its own module."""
    (folder / "probe.f90").write_text("use mpi_f08\nend\n")
    found = shutil.which(compiler)
    probe = [compiler, "-fsyntax-only", "probe.f90"]
    return found and subprocess.run(probe, cwd=folder, capture_output=True).returncode == 0


@pytest.fixture(params=MPIS)
def mpi(request, tmp_path):
    """One MPI's mpiexec and compilers."""
    package = {"default": "openmpi-bin libopenmpi-dev", "mpich": "mpich libmpich-dev"}
    if not has_module(MPIS[request.param][2], tmp_path):
        pytest.skip(f"{request.param} MPI is missing: apt-get install {package[request.param]}")
    return MPIS[request.param]


@pytest.fixture
def mpi_folder(shell, tmp_path):
    """A copy of the MPI example's folder beside the others."""
    return shutil.copytree(EXAMPLES / "mpi", shell.folder / tmp_path.name)


def test_gpu_arrays(shell):
    shell.type("gpu_arrays", "export TORCHSPAN_PRETEND_CUDA=2", "python3 gpu_arrays.py", *BUILD)
    for program in ("gpu_arrays_infer_fortran", "gpu_arrays_infer_c"):
        run = f"./{program} ../double.pt2"
        said = shell.type("gpu_arrays", "export TORCHSPAN_PRETEND_CUDA=2", "cd build", run)
        assert said == ["[  0.0,  8.0, 16.0, 24.0, 32.0]"]


@pytest.mark.mpi
def test_mpi(shell, mpi, mpi_folder):
    mpiexec, cc, fc = mpi
    lines = [line.format("rank") for line in INPUTS + OUTPUTS]
    make, enter, configure, build = BUILD
    configure += f" -DMPI_C_COMPILER={cc} -DMPI_Fortran_COMPILER={fc}"
    shell.type(mpi_folder, "python3 pt2ts.py", make, enter, configure, build)
    for program in ("mpi_infer_fortran", "mpi_infer_c"):
        run = f"{mpiexec} -np 2 ./{program} ../saved_simplenet_model_cpu.pt"
        assert sorted(shell.type(mpi_folder, "cd build", run)) == lines
    shell.type(mpi_folder, "cp ../simplenet/Makefile .", f"make CC={cc} FC={fc}")
    for program in ("mpi_infer_fortran", "mpi_infer_c"):
        run = f"{mpiexec} -np 2 ./{program} saved_simplenet_model_cpu.pt"
        assert sorted(shell.type(mpi_folder, run)) == lines


LOADS = {
    "mpi_infer_fortran.f90": ("fortran", '  call net%load(path, "rank")\n'),
    "mpi_infer_c.c": ("c", '  check(tspan_model_load(argv[1], "rank", &net));\n'),
    "mpi_infer_python.py": ("python", 'devices="rank"'),
}


@pytest.mark.mpi
def test_the_exercise_of_the_mpi_page(shell, mpi, mpi_folder):
    mpiexec, cc, fc = mpi
    readme = (mpi_folder / "README.md").read_text(encoding="utf-8").split("## Exercise")[1]
    answers = dict(re.findall(r"```(fortran|c)\n(.*?)```", readme, re.DOTALL))
    answers["python"] = re.search(r"`(devices=.*?)`", readme)[1]
    for name, (language, line) in LOADS.items():
        text = (mpi_folder / name).read_text(encoding="utf-8")
        assert text.count(line) == 1
        (mpi_folder / name).write_text(text.replace(line, answers[language]), encoding="utf-8")
    pretend = "export TORCHSPAN_PRETEND_CUDA=2"
    shell.type(
        mpi_folder, "python3 pt2ts.py", "cp ../simplenet/Makefile .", f"make CC={cc} FC={fc}"
    )
    for program in ("mpi_infer_fortran", "mpi_infer_c"):
        run = f"{mpiexec} -np 2 ./{program} saved_simplenet_model_cpu.pt"
        said = shell.type(mpi_folder, pretend, run)
        assert sorted(said) == [line.format("rank") for line in INPUTS + OUTPUTS]
    said = shell.type(mpi_folder, pretend, f"{mpiexec} -np 2 python3 mpi_infer_python.py")
    assert sorted(said)[:2] == ["rank 0: result:", "rank 1: result:"]
    third = f"{mpiexec} -np 3 ./mpi_infer_c saved_simplenet_model_cpu.pt 2>&1 || true"
    assert "device 'cuda:2' is not there" in "".join(shell.type(mpi_folder, pretend, third))


def test_tensors(shell):
    assert shell.type("tensors", *BUILD, "./fit_c")[-1] == "3.000 x + -2.000"


def test_make_builds_what_it_says(shell):
    shell.type("multi_gpu", "cp ../simplenet/Makefile .", "make",
               "python3 pt2ts.py --device_type cpu")  # fmt: skip
    said = shell.type("multi_gpu", "./multigpu_infer_c cpu saved_multigpu_model_cpu.pt")
    assert said[-1] == OUTPUTS[1].format("device")
    assert shell.type("multi_gpu", "make --silent") == []
    shell.type("multi_gpu", "make clean")
    assert not (shell.folder / "multi_gpu" / "multigpu_infer_c").exists()


def test_python_script(shell):
    weights = shell.folder / "python_script" / "doubling.pt"
    shell.type("python_script", *BUILD)
    for program in ("script_train_fortran", "script_train_c"):
        weights.unlink(missing_ok=True)
        run = f"build/{program} python_script.py"
        assert shell.type("python_script", run) == ["  0.0,  2.0,  4.0,  6.0,  8.0"]
        assert weights.exists()
        assert shell.type("python_script", run) == ["  0.0,  2.0,  4.0,  6.0,  8.0"]
    said = shell.type("python_script", "python3 script_infer_python.py")
    assert said[1] == "  2.0,  4.0,  6.0,  8.0, 10.0"


def test_fpm(shell):
    if shutil.which("fpm", path=shell.environ["PATH"]) is None:
        pytest.skip("fpm is missing, and has no wheel for this machine")
    readme = (shell.folder / "fpm" / "README.md").read_text(encoding="utf-8")
    install, variables, run, printed = re.findall(r"```\n(.*?)```", readme, re.DOTALL)
    assert install.splitlines()[-1] == "torchspan build --prefix ~/torchspan --fc gfortran"
    said = shell.type("fpm", variables.replace("~/torchspan", "$PREFIX"), run)
    assert said[-2:] == printed.splitlines()
    assert "[100%] Project compiled successfully." in said
    again = shell.type("fpm", variables.replace("~/torchspan", "$PREFIX"), run.splitlines()[1])
    assert not any("main.f90" in line for line in again)
    assert again[-2:] == said[-2:]
    shell.type("fpm", variables.replace("~/torchspan", "$PREFIX"), "fpm install --prefix there")
    alone = shell.type("fpm", "there/bin/doubling saved_simplenet_model_cpu.pt")
    assert alone == said[-2:]


def test_an_absent_file_stops_the_program(shell):
    shell.type("simplenet", "make")
    program = shell.folder / "simplenet" / "simplenet_infer_fortran"
    done = call([program, "nothing.pt"], status=1)
    assert "torchspan: there is no model file nothing.pt" in done.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*_*_*.[cf]*")), ids=str)
def test_readmes_name_their_programs(path):
    readme = (path.parent / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"{path.stem}\b", readme)
