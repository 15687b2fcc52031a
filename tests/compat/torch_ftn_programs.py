# SPDX-License-Identifier: MIT
"""What the tests of torch_ftn share: programs, and models."""

import shutil
import warnings
from pathlib import Path

import torch

from tests.native.fortran_programs import call

SOURCES = Path(__file__).parent / "torch_ftn"
KINDS = {"real32": "real", "real64": "real", "int32": "integer", "int64": "integer"}


class Programs:
    """Programs compiled against a prefix, with what pkg-config says of a package."""

    def __init__(self, prefix, folder, compiler, package="pytorch_fort_proxy"):
        self.prefix = prefix
        self.folder = folder
        self.compiler = compiler
        self.package = package

    def compile(self, source, *options):
        """The path of the program of a source."""
        target = self.folder / source.stem
        if not target.exists():
            pkg = {"PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
            words = call(["pkg-config", "--cflags", "--libs", self.package], **pkg).stdout
            call([self.compiler, "-O1", *options, source, "-o", target, *words.split()],
                 cwd=self.folder)  # fmt: skip
        return target

    def run(self, source, *arguments, status=0, options=(), **environ):
        """Compile and run a program, by its source or its name."""
        path = source if isinstance(source, Path) else SOURCES / f"{source}.f90"
        program = self.compile(path, *options)
        return call([program, *arguments], status=status, OMP_NUM_THREADS="1", **environ)


BLOCK = """
  block
    WORD(KIND), target :: x(LAST)
    WORD(KIND), allocatable, target :: z(COLONS)
    WORD(KIND), pointer :: p(COLONS), y(COLONS)
    type(torch_tensor) :: tensor, output
    type(torch_tensor_wrap) :: inputs
    integer :: i
    x = reshape([(BASE + i, i=1, size(x))], shape(x))
    call tensor%from_array(x)
    call tensor%to_array(y)
    if (.not. associated(y, x)) error stop "KIND RANK: not the array itself"
    if (any(lbound(y) /= 1) .or. any(y /= x)) error stop "KIND RANK: other values"
    y(LAST) = 40
    if (x(LAST) /= 40) error stop "KIND RANK: a copy"
    allocate (z, source=x)
    p => z
    call tensor%from_array(p)
    call tensor%to_array(y)
    if (.not. associated(y, z)) error stop "KIND RANK: not the pointer's target"
    call inputs%create()
    call inputs%add_tensor(tensor)
    call inputs%add_array(x)
    call inputs%add_array(p)
    call inputs%add_scalar(x(FIRST))
    call net%forward(inputs, output)
    call output%to_array(y)
    if (any(shape(y) /= shape(x))) error stop "KIND RANK: another shape"
    if (any(y /= 3*x + x(FIRST))) error stop "KIND RANK: another sum"
    print "(a)", "KIND RANK"
  end block
"""
# Values that a smaller kind would not hold.
BASES = {"real32": "0.25_real32", "real64": "1e-12_real64", "int32": "2**24",
         "int64": "2_int64**40"}  # fmt: skip


def kinds_and_ranks():
    """A program that takes arrays and pointers of every kind and rank there and back."""
    blocks = []
    for kind, word in KINDS.items():
        for rank in range(1, 8):
            words = {
                "WORD": word, "KIND": kind, "RANK": str(rank), "BASE": BASES[kind],
                "LAST": ", ".join("2312213"[:rank]), "FIRST": ", ".join("1" * rank),
                "COLONS": ", ".join(":" * rank),
            }  # fmt: skip
            block = BLOCK
            for name, text in words.items():
                block = block.replace(name, text)
            blocks.append(block)
    return f"""program kinds
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use torch_ftn
  implicit none
  type(torch_module) :: net
  character(len=512) :: path
  call get_command_argument(1, path)
  call net%load(path)
{"".join(blocks)}
end program kinds
"""


class Sums(torch.nn.Module):
    """The sum of each row of three, and its last."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if x.size(1) != 3:
            raise ValueError("rows of three")
        return torch.stack([x.sum(1), x[:, 2]], 1), x


class Twice(torch.nn.Module):
    """Doubles."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


class Scalars(torch.nn.Module):
    """Takes numbers."""

    def forward(self, x: torch.Tensor, scale: float, count: int) -> torch.Tensor:
        return x * scale + count


class Added(torch.nn.Module):
    """Adds four tensors."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor):
        return a + b + c + d


class Nine(torch.nn.Module):
    """Adds nine tensors."""

    def forward(self, a, b, c, d, e, f, g, h, i):
        return a + b + c + d + e + f + g + h + i


def linear():
    """What the training of lines.f90 begins with."""
    torch.manual_seed(3)
    return torch.nn.Linear(3, 2)


SCRIPTS = {
    "learning": """import torch
torch.manual_seed(0)
net = torch.nn.Linear(2, 2)
steps = []
def ftn_pytorch_forward(inputs):
    return inputs[0] * 2
def ftn_pytorch_train(inputs, target):
    assert torch.is_grad_enabled()
    steps.append(torch.nn.functional.l1_loss(inputs[0] + 0.5, target).item())
    return len(steps) == 5, steps[-1]
def ftn_pytorch_save(filename):
    open(filename, "w").write(str(steps))
""",
    "scaling": """def ftn_pytorch_forward(inputs):
    x, count, scale = inputs
    return x * len(range(count)) * scale
""",
    "raising": """def ftn_pytorch_forward(inputs):
    raise KeyError("on purpose")
def ftn_pytorch_train(inputs, target):
    raise ValueError("no step")
""",
}


def write_models(folder):
    """Write every model and script."""
    nets = {"sums": Sums(), "twice": Twice(), "scalars": Scalars(), "added": Added(),
            "nine": Nine(), "linear": linear()}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is what is tested
        for name, net in nets.items():
            torch.jit.script(net).save(folder / f"{name}.pt")
    for name, text in SCRIPTS.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def available(compiler):
    """Whether a compiler is there."""
    return shutil.which(compiler) is not None and shutil.which("pkg-config") is not None
