# SPDX-License-Identifier: MIT
"""Programs written to older APIs, compiled against the prefix that the native tests share."""

import warnings

import pytest
import torch

from tests.native.fortran_programs import call, install

CHECKS = """
  subroutine expect(condition, name)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: name
    if (.not. condition) error stop "not so: "//name
  end subroutine expect
"""


class Front:
    """A compiler, and the prefix that `torchspan build --with` filled with it."""

    def __init__(self, prefix, folder, compiler, package):
        self.prefix = prefix
        self.folder = folder
        self.compiler = compiler
        paths = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
        words = call(["pkg-config", "--cflags", "--libs", package], **paths).stdout.split()
        self.words = words

    def compile(self, name, text):
        """Compile a program whose text may lack the check that all share."""
        source, program = self.folder / f"{name}.f90", self.folder / name
        if not program.exists():
            whole = text.replace("contains\n", f"contains\n{CHECKS}", 1)
            source.write_text(whole, encoding="utf-8")
            call([self.compiler, "-O1", source, "-o", program, *self.words], cwd=self.folder)
        return program

    def run(self, name, text, *arguments, status=0, **environ):
        """Compile and run a program; gives what it did."""
        return call(
            [self.compile(name, text), *arguments], status=status, cwd=self.folder, **environ
        )


@pytest.fixture(scope="session", params=["gfortran", "flang-22"])
def ftorch(request, run_folder, tmp_path_factory):
    prefix = install(run_folder, request.param)
    return Front(prefix, tmp_path_factory.mktemp("ftorch"), request.param, "FTorch")


class Pair(torch.nn.Module):
    """Two inputs, two outputs."""

    def forward(self, a, b):
        return a + b, a * b


class Line(torch.nn.Module):
    """A weight and an offset to be trained."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.0]))
        self.offset = torch.nn.Parameter(torch.tensor([0.0]))

    def forward(self, x):
        return self.weight * x + self.offset


@pytest.fixture(scope="session")
def ftorch_models(tmp_path_factory):
    """A folder of models."""
    folder = tmp_path_factory.mktemp("models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is what is tested
        for name, module in (("pair", Pair()), ("line", Line())):
            torch.jit.script(module).save(folder / f"{name}.pt")
    (folder / "twice.py").write_text("def forward(x):\n    return 2 * x\n", encoding="utf-8")
    return folder
