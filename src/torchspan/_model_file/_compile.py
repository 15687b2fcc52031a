# SPDX-License-Identifier: MIT
"""One program compiled for one kind of device, and compared with eager before anybody trusts it."""

from __future__ import annotations

import inspect
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from torchspan import _accelerator
from torchspan._aoti import open_build
from torchspan._errors import BuildError
from torchspan._log import log, timed
from torchspan._model_file._archive import (
    BuildFiles,
    OwnFolder,
    build_folder,
    digest_files,
    place_files,
    quiet_torch,
)
from torchspan._model_file._capability import find_level, fits, generating_for, replaced
from torchspan._model_file._compare import compare_build
from torchspan._model_file._description import Build
from torchspan._model_file._example import Example
from torchspan._model_file._indices import guard_indices
from torchspan._model_file._program import (
    count_weights,
    export_program,
    first_line,
    fixed_rows,
    move_program,
)
from torchspan._model_file._target import Target, compiler_options

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["build_checked", "compile_build"]

_compiling = threading.Lock()


def compile_build(program: ExportedProgram, example: Example, target: Target) -> BuildFiles:
    """Compile ``program`` for ``target``, into files of the build's own.

    In torch's cache folder, which they are copied from, builds share files, and a later one writes
    some of them anew.

    Raises:
        BuildError: The compiler failed or is missing.
    """
    with timed("compiled build %s", target.name):
        moved, shown = _prepare(program, example, target)
        options = compiler_options(target, count_weights(program))
        level = find_level(target.cpu) if target.kind == "cpu" else None
        tf32 = _accelerator.tf32(target.kind) if target.precision == "tf32" else nullcontext()
        try:
            with _compiling, torch.no_grad(), quiet_inductor(), generating_for(level), tf32:
                module: Any = moved.module()
                if target.kind == "cpu":
                    module = guard_indices(module)
                files: Any = torch._inductor.aot_compile(
                    module, shown.positional, shown.by_keyword, options=options
                )
                folder = OwnFolder()
                paths = tuple(Path(shutil.copy(str(file), folder.path)) for file in files)
        except Exception as error:
            raise BuildError(_explain(error, target)) from error
    return BuildFiles(_describe(target, paths), paths, folder)


def build_checked(
    program: ExportedProgram,
    example: Example,
    target: Target,
    check: bool = True,
    progress: Callable[[str], None] = log.info,
) -> BuildFiles:
    """Compile ``program`` for ``target`` and compare the build with eager.

    Raises:
        BuildError: The compiler failed or is missing, or the build gives wrong results.
    """
    progress(f"compiling {target.name}")
    built = compile_build(program, example, target)
    if not (check and fits(built.build.capability, target.device)):
        return built
    progress(f"comparing {target.name} with eager")
    with tempfile.TemporaryDirectory(prefix="torchspan-") as folder:
        place_files(built, Path(folder))
        run = open_build(Path(folder), target.device, runners=1)
        error = compare_build(
            program,
            example,
            run,
            target.name,
            target.device.torch,
            target.precision,
            target.rows,
        )
    return replace(built, build=replace(built.build, error=error))


@contextmanager
def quiet_inductor() -> Iterator[None]:
    """Keep torch's warnings, and what Inductor prints of the kernels it tries, from users."""
    from torch._inductor import select_algorithm

    with quiet_torch(), ExitStack() as stack:
        for name, value in (
            ("PRINT_AUTOTUNE", False),
            ("_log_autotune_choices_stats", lambda *_, **__: None),
        ):
            if hasattr(select_algorithm, name):
                stack.enter_context(replaced(select_algorithm, name, value))
        yield


class _Autocast(nn.Module):
    """A model whose matrix products are done in bfloat16; float32 in, float32 out."""

    def __init__(self, inner: nn.Module, kind: str) -> None:
        super().__init__()
        self.inner = inner

        def forward(*inputs: Tensor, **named: Tensor) -> Any:
            with torch.autocast(kind, dtype=torch.bfloat16):
                result = inner(*inputs, **named)
            return torch.utils._pytree.tree_map_only(Tensor, _widen, result)

        # torch.export asks the signature for the arguments' names.
        vars(forward)["__signature__"] = inspect.signature(inner.forward)
        vars(self)["forward"] = forward


def _widen(value: Tensor) -> Tensor:
    return value.float() if value.dtype == torch.bfloat16 else value


def _prepare(
    program: ExportedProgram, example: Example, target: Target
) -> tuple[ExportedProgram, Example]:
    program = move_program(program, target.device.torch)
    shown = example.on(target.device.torch)
    if target.rows is not None:
        shown = fixed_rows(shown.with_rows(target.rows))
    if target.precision == "bfloat16":
        return export_program(_Autocast(program.module(), target.kind), shown), shown
    if target.rows is not None:
        return export_program(program.module(), shown), shown
    return program, shown


def _describe(target: Target, files: tuple[Path, ...]) -> Build:
    return Build(
        name=target.name,
        folder=build_folder(target.name),
        device=target.kind,
        capability=target.capability,
        precision=target.precision,
        min_batch=target.rows or 0,
        max_batch=target.rows,
        torch=torch.__version__.split("+")[0],
        digest=digest_files(files),
    )


def _explain(error: Exception, target: Target) -> str:
    text = str(error)
    if type(error).__name__ == "InvalidCxxCompiler" or "C++ compiler" in text:
        return (
            f"no C++ compiler was found to build {target.name} with. Install one ('apt-get install "
            "g++'), or name it in CXX."
        )
    told = text if "error:" in text else first_line(error)
    return f"torch could not compile the build {target.name}: {told}"
