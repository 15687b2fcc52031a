# SPDX-License-Identifier: MIT
"""examples/pytorch_fortran: what its README says to type, typed, line by line."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.compat.torch_ftn_programs import Programs, available
from tests.native.fortran_programs import install
from tests.test_examples import EXAMPLES, copy_example, type_in

# As pytorch-fortran's README has them.
COMMANDS = (
    "install/bin/resnet_forward ../examples/resnet_forward/traced_model.pt",
    "install/bin/polynomial ../examples/polynomial/traced_model.pt "
    "../examples/polynomial/your_new_trained_model.pt",
    "install/bin/python_training  ../examples/python_training/model.py",
)
SAMPLES = ("resnet_forward", "polynomial", "python_training")
README = (EXAMPLES / "pytorch_fortran" / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A copy that was built, torchspan too, with OpenACC: FFLAGS goes to both."""
    if not available("gfortran"):
        pytest.skip("gfortran or pkg-config is missing")
    here = copy_example("pytorch_fortran", tmp_path_factory.mktemp("samples"))
    type_in("FFLAGS=-fopenacc ./make_gcc.sh", here, {})
    for sample in SAMPLES:
        step = f"python3 examples/{sample}/setup-model.py"
        assert f"\n{step}\n" in README
        assert type_in(step, here, {}).startswith("wrote ")
    return here / "build"


def test_each_command_prints_what_the_readme_says(built):
    """The steps at which training reports depend on rounding; that it ends so does not."""
    for command in COMMANDS:
        assert f"\n{command}\n" in README
        said = type_in(command, built, {}).splitlines()
        shown = [line for line in README.splitlines() if line in said]
        for line in said:
            assert line in shown or line.startswith(("step ", "x "))
    assert (built.parent / "examples" / "polynomial" / "your_new_trained_model.pt").is_file()


def test_the_module_itself_was_built_with_openacc(built):
    library = built / "install" / "lib" / "libpytorch_fort_proxy.so"
    names = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    assert "U acc_map_data" in names


def test_the_polynomial_without_openacc(built, run_folder, tmp_path):
    plain = Programs(install(run_folder, "gfortran"), tmp_path, "gfortran")
    folder = built.parent / "examples" / "polynomial"
    models = folder / "traced_model.pt", tmp_path / "trained.pt"
    said = plain.run(folder / "polynomial.F90", *models).stdout.splitlines()
    assert said[-1] == "the polynomial is learnt and saved"
    values = [(float(line.split()[3]), float(line.split()[5])) for line in said if line[0] == "x"]
    assert len(values) == 4
    for wanted, learnt in values:
        assert learnt == pytest.approx(wanted, abs=0.1)
    assert models[1].is_file()


def test_the_resnet_by_torchspan_s_own_api(built, run_folder, tmp_path):
    own = Programs(install(run_folder, "gfortran"), tmp_path, "gfortran", "torchspan-fortran")
    model = built.parent / "examples" / "resnet_forward" / "traced_model.pt"
    said = own.run(built.parent / "resnet_infer_fortran.f90", model).stdout.splitlines()
    assert said[0] == "classes 1000, images 10"
    for line in said[1:]:
        name, values = line[:12], [float(each) for each in line[12:].split()]
        (shown,) = (each[12:].split() for each in README.splitlines() if each[:12] == name)
        assert values == pytest.approx([float(each) for each in shown], abs=2e-3)


@pytest.mark.parametrize(
    ("script", "compiler"), [("make_intel.sh", "ifx"), ("make_nvhpc.sh", "nvfortran")]
)
def test_an_absent_compiler_is_named(script, compiler, tmp_path):
    here = copy_example("pytorch_fortran", tmp_path)
    path = os.pathsep.join(
        each
        for each in os.environ["PATH"].split(os.pathsep)
        if not (Path(each) / compiler).exists()
    )
    done = subprocess.run(
        [f"./{script}"], cwd=here, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"there is no {compiler} on the PATH. README.md says what to install." in done.stderr
