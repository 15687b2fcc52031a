# SPDX-License-Identifier: MIT
"""Every example is run as its README says, in a copy of its folder, and prints what it says.

A new example gets a row in `RUNS`; the last tests fail until it has one.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
LAUNCHER = re.compile(r"(OMPI|PMIX?|MPI|SLURM|TORCHSPAN|TORCHELASTIC)_|RANK$|^(LOCAL_)?WORLD_SIZE$")

WHOLE = "tensor([[0, 2, 4, 6, 8]])\n"
FIRST = "tensor([[0., 2., 4., 6., 8.]])\n"
SECOND = "tensor([[ 2.,  4.,  6.,  8., 10.]])\n"
THIRD = "tensor([[ 4.,  6.,  8., 10., 12.]])\n"
RANKS = [f"rank {rank}: result:\n{row}" for rank, row in enumerate([FIRST, SECOND, THIRD])]


@dataclass
class Run:
    """Commands typed one after another in one example's folder, and what they must do."""

    folder: str
    steps: dict[str, list[str]]  # command: the pieces of what it prints, in any order
    writes: str
    environ: tuple[tuple[str, str], ...] = ()

    @property
    def name(self):
        return " ".join([self.folder, *(f"{k}={v}" for k, v in self.environ), *self.steps])


def simplenet(form="pt"):
    more = f" --format {form}" if form != "pt" else ""
    path = f"saved_simplenet_model_cpu.{form}"
    return Run(
        "simplenet",
        {
            "python3 simplenet.py": [WHOLE],
            f"python3 pt2ts.py{more}": [f"wrote {path}\n"],
            f"python3 simplenet_infer_python.py{more}": [FIRST],
        },
        writes=path,
    )


def multi_gpu(kind, form="pt", pretend=0):
    path = f"saved_multigpu_model_{kind}.{form}"
    rows = [f"Output on device {index}: {row}" for index, row in enumerate([FIRST, SECOND])]
    head = f"SimpleNet forward pass on {kind.upper()} device 0\n"
    more = f" --format {form}" if form != "pt" else ""
    return Run(
        "multi_gpu",
        {
            f"python3 simplenet.py --device_type {kind}": [head + WHOLE],
            f"python3 pt2ts.py --device_type {kind}{more}": [f"wrote {path}\n"],
            f"python3 multigpu_infer_python.py --device_type {kind}{more}": [
                "".join(rows[: 1 if kind == "mps" else 2])
            ],
        },
        writes=path,
        environ=((f"TORCHSPAN_PRETEND_{kind.upper()}", str(pretend)),) if pretend else (),
    )


def mpi(steps, environ=(), form="pt"):
    more = f" --format {form}" if form != "pt" else ""
    path = f"saved_simplenet_model_cpu.{form}"
    return Run(
        "mpi",
        {f"python3 pt2ts.py{more}": [f"wrote {path}\n"], **steps},
        writes=path,
        environ=environ,
    )


RUNS = [
    Run("first_model", {"python3 first_model.py": ["True\n"]}, "net.pt2"),
    Run(
        "multi_io",
        {
            "python3 multi_io.py": [
                "grid: float32 (40)\n",
                "{'rates': True, 'cover': True}\n",
                "mean rate -0.0307, cover  0.4649\n",
            ]
        },
        "heating.pt2",
    ),
    Run("looping", {"python3 looping.py": ["True\n", "mean  0.4928, first  0.2586\n"]},
        "tendency.pt2"),
    Run("batching", {"python3 batching.py": [
        "sums of 1, 6 and 30 columns:  -0.1329   0.8879   5.8083\n"]}, "column.pt2"),
    simplenet(),
    simplenet("pt2"),
    multi_gpu("cpu"),
    multi_gpu("cuda", pretend=2),
    multi_gpu("xpu", pretend=2),
    multi_gpu("mps", pretend=1),
    multi_gpu("cuda", "pt2", pretend=2),
    Run(
        "python_script",
        {
            "python3 python_script.py": ["wrote doubling.pt\n"],
            "python3 script_infer_python.py": [
                "  0.0,  2.0,  4.0,  6.0,  8.0\n  2.0,  4.0,  6.0,  8.0, 10.0\n"
            ],
        },
        "doubling.pt",
    ),
    *(
        Run(
            "gpu_arrays",
            {f"python3 gpu_arrays.py{more}": ["[  0.0,  8.0, 16.0, 24.0, 32.0]\n"]},
            "double.pt2",
            environ,
        )
        for more, environ in ((" --device cpu", ()), ("", (("TORCHSPAN_PRETEND_CUDA", "2"),)))
    ),
    mpi({
        "python3 simplenet.py": [WHOLE],
        "mpiexec -np 2 python3 mpi_infer_python.py": RANKS[:2],
        "torchrun --nproc-per-node=2 mpi_infer_python.py": RANKS[:2],
    }),
    mpi({"mpiexec -np 3 python3 mpi_infer_python.py": RANKS}, (("TORCHSPAN_PRETEND_CUDA", "2"),)),
    mpi({"mpiexec -np 2 python3 mpi_infer_python.py --format pt2": RANKS[:2]}, form="pt2"),
]  # fmt: skip

# Examples with tests of their own.
ELSEWHERE = {"demo": "test_demo.py", "ranks": "ranks"}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_example(run, tmp_path):
    if any("mpiexec" in command for command in run.steps) and shutil.which("mpiexec") is None:
        pytest.skip("mpiexec is missing: sudo apt-get install openmpi-bin openssh-client")
    folder = copy_example(run.folder, tmp_path)
    before = {path.name for path in folder.iterdir()}
    for command, pieces in run.steps.items():
        printed = type_in(command, folder, dict(run.environ))
        assert sorted("".join(pieces).splitlines()) == sorted(printed.splitlines())
        for piece in pieces:
            assert piece in printed
    written = {path.name for path in folder.iterdir()} - before - {"__pycache__"}
    assert written == {run.writes}


def copy_example(name, folder):
    """Copy an example without what somebody who tried it by hand has left there."""
    left = shutil.ignore_patterns("*.pt", "*.pt2", "*.npy", "venv", "build", "__pycache__")
    return shutil.copytree(EXAMPLES / name, folder / name, ignore=left)


def type_in(command, folder, environ):
    """Run the command as a user in the activated environment would; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not LAUNCHER.search(name)}
    environ = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}",
        "OMP_NUM_THREADS": "1",
        "TORCHSPAN_CACHE": str(folder.parent / "cache"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        **environ,
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environ, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_an_absent_device_is_an_error_that_says_what_to_do(tmp_path):
    folder = copy_example("multi_gpu", tmp_path)
    with pytest.raises(AssertionError, match=r"device 'xpu:0' is not there.*_PRETEND_XPU=2"):
        type_in("python3 simplenet.py --device_type xpu", folder, {})


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/requirements.txt")), ids=str)
def test_requirements_are_those_of_this_environment(file):
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-index",
               "--no-build-isolation", "--disable-pip-version-check", "-r", file.name]  # fmt: skip
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_every_example_is_tested_and_has_a_readme_that_names_its_files():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders - {run.folder for run in RUNS} <= set(ELSEWHERE)
    for folder in folders:
        readme = (EXAMPLES / folder / "README.md").read_text(encoding="utf-8")
        started = " ".join(c for run in RUNS if run.folder == folder for c in run.steps)
        for path in (EXAMPLES / folder).glob("*.py"):
            assert path.name in readme or folder in ELSEWHERE, path
            assert path.name in started or folder in ELSEWHERE, path
