# SPDX-License-Identifier: MIT
"""The tasks of examples/ftorch, typed in line by line as their READMEs say.

A block of a README is commands or what the last command before it prints.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.fortran_programs import call, install

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "ftorch"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/CMakeLists.txt"))
COMMANDS = ("python3 ", "pt2ts ", "../build/", "mpiexec ", "cmake ")
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1"}  # fmt: skip


def blocks(folder):
    """The fenced blocks of a README, in order."""
    return re.findall(r"^```\n(.*?)^```$", read(folder / "README.md"), re.MULTILINE | re.DOTALL)


def read(path):
    return path.read_text(encoding="utf-8")


class Shell:
    """A copy of the examples, and a user whose home has the libraries where READMEs say."""

    def __init__(self, folder, prefix):
        self.folder = folder / "ftorch"
        self.environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"), "OMP_NUM_THREADS": "1", **MPI,
        }  # fmt: skip
        if not self.folder.exists():
            left = shutil.ignore_patterns("*.pt", "*.dat", "build", "venv", "__pycache__")
            shutil.copytree(EXAMPLES, self.folder, ignore=left)
            (folder / "home").mkdir()
            (folder / "home" / "torchspan").symlink_to(prefix)

    def type(self, example, *lines, status=0, **environ):
        """Type lines in at a folder; return what they did."""
        script = "set -e\n" + "\n".join(lines)
        return call(["bash", "-c", script], status=status, cwd=self.folder / example,
                    **{**self.environ, **environ})  # fmt: skip


@pytest.fixture(scope="session")
def shell(run_folder):
    """The examples, all built in one build by whichever process needs them first."""
    prefix = install(run_folder)
    folder = run_folder / "ftorch-examples"
    folder.mkdir(exist_ok=True)
    with (run_folder / "ftorch-examples.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        shell = Shell(folder, prefix)
        if not (folder / "built").exists():
            shell.type(".", blocks(EXAMPLES)[1])
            (folder / "built").touch()
    return shell


def follow(shell, folder, kind="cuda", **environ):
    """Type a README's commands in, and compare what it says that they print."""
    printed = None
    for block in blocks(EXAMPLES / folder):
        text = block.replace("<type>", kind)
        if text.startswith(COMMANDS):
            for line in text.splitlines():
                printed = shell.type(folder, line, **environ).stdout
        else:
            said, wanted = printed.splitlines(), text.splitlines()
            yield (sorted(said), sorted(wanted)) if folder == "8_mpi" else (said, wanted)


@pytest.mark.parametrize("folder", [each.name for each in FOLDERS])
def test_what_the_readme_says(shell, folder):
    if folder == "8_mpi" and not (shell.folder / "build" / folder).exists():
        pytest.skip("MPI is missing: sudo apt-get install openmpi-bin libopenmpi-dev")
    compared = 0
    for said, wanted in follow(shell, folder, TORCHSPAN_PRETEND_CUDA="2"):
        assert said == wanted
        compared += 1
    assert compared >= 1


@pytest.mark.parametrize(("kind", "count"), [("xpu", 2), ("mps", 1)])
def test_other_devices_are_chosen_at_run_time(shell, kind, count):
    pretend = {f"TORCHSPAN_PRETEND_{kind.upper()}": str(count)}
    ((said, wanted),) = follow(shell, "7_multi_gpu", kind, **pretend)
    assert said == wanted[: 2 * count]


def test_a_device_that_is_not_there_stops_the_program(shell):
    shell.type("7_multi_gpu", "python3 pt2ts.py --device_type xpu")
    run = "../build/7_multi_gpu/multigpu_infer_fortran xpu saved_multigpu_model_xpu.pt"
    done = shell.type("7_multi_gpu", run, status=1)
    assert "'xpu:0' is not there" in done.stderr
    assert "output" not in done.stdout


def test_the_rank_s_gpu_and_one_that_is_not_there(shell):
    if not (shell.folder / "build" / "8_mpi").exists():
        pytest.skip("MPI is missing: sudo apt-get install openmpi-bin libopenmpi-dev")
    *_, run = (each for each in blocks(EXAMPLES / "8_mpi") if each.startswith("mpiexec"))
    assert run.endswith("cuda\n")
    shell.type("8_mpi", "python3 pt2ts.py")
    done = shell.type("8_mpi", run, TORCHSPAN_PRETEND_CUDA="2")
    assert "output on rank 1: [  2.0,  4.0,  6.0,  8.0, 10.0]" in done.stdout
    with pytest.raises(AssertionError, match="'cuda:1' is not there"):
        shell.type("8_mpi", run, TORCHSPAN_PRETEND_CUDA="1")


def test_a_folder_by_itself_with_cmake_and_with_make(shell, tmp_path):
    folder = shutil.copytree(shell.folder / "2_simplenet", tmp_path / "2_simplenet")
    shell.type(folder, "python3 pt2ts.py", blocks(EXAMPLES)[2])
    line = "  0.0,  2.0,  4.0,  6.0,  8.0\n"
    model = "saved_simplenet_model_cpu.pt"
    assert shell.type(folder, f"build/simplenet_infer_fortran {model}").stdout == line
    shell.type(folder, "make PREFIX=~/torchspan")
    assert shell.type(folder, f"./simplenet_infer_fortran {model}").stdout == line
    readme = read(EXAMPLES / "2_simplenet" / "README.md")
    assert "`make PREFIX=~/torchspan`" in readme
    assert f"`./simplenet_infer_fortran {model}`" in readme
    assert shell.type(folder, "make --silent").stdout == ""
    shell.type(folder, "make clean")
    assert not (folder / "simplenet_infer_fortran").exists()


def test_pt2ts_of_the_example_writes_where_it_is_told(shell, tmp_path):
    done = shell.type("2_simplenet", f"python3 pt2ts.py --filepath {tmp_path}")
    assert done.stdout == f"wrote {tmp_path}/saved_simplenet_model_cpu.pt\n"


def test_what_was_trained_opens_in_python(shell):
    shell.type("11_training", *blocks(EXAMPLES / "11_training")[0].splitlines())
    program = "import torch; print(torch.jit.load('trained_model.pt')(torch.ones(1, 5)).round())"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=shell.folder / "11_training", capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("tensor([[2., 2., 2., 2., 2.]]")


def test_the_prefix_is_built_as_the_readme_says():
    line = "torchspan build --prefix ~/torchspan --fc gfortran --with ftorch"
    assert blocks(EXAMPLES)[0].splitlines()[-1] == line


def test_every_task_is_listed_and_its_readme_names_its_files():
    assert sorted(int(each.name.split("_")[0]) for each in FOLDERS) == list(range(1, 12))
    listed = read(EXAMPLES / "README.md")
    for folder in FOLDERS:
        assert f"[{folder.name}]({folder.name}/README.md)" in listed
        assert folder.name in read(EXAMPLES / "CMakeLists.txt")
        readme = read(folder / "README.md")
        for path in [*folder.glob("*.py"), *folder.glob("*.f90")]:
            assert re.search(rf"{path.stem}\b", readme), path


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.f90")), ids=lambda path: path.name)
def test_programs_use_nothing_but_ftorch(path):
    modules = set(re.findall(r"^ *use (?:, intrinsic ::)? *(\w+)", read(path), re.MULTILINE))
    assert modules <= {"ftorch", "mpi"}
    assert "torchspan" not in read(path)
