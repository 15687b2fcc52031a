# SPDX-License-Identifier: MIT
"""What tests share: model files built once a run, a cache of the run's own, quiet threads.

Building one model file takes many seconds, so each is built by whichever process needs it first,
under a lock, and read by all others.
"""

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import torchspan
from tests import compile_once, zoo

SWITCHES = ("PRETEND_CUDA", "PRETEND_XPU", "PRETEND_MPS", "LOG")


def pytest_configure(config: pytest.Config) -> None:
    for name in SWITCHES:
        os.environ.pop(f"TORCHSPAN_{name}", None)
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Two processes on two cores: more threads would only take turns.
        torch.set_num_threads(1)
    elif not any(f"CMAKE_{each}_COMPILER_LAUNCHER" in os.environ for each in ("C", "CXX")):
        # Here, because programs that tests start get the environment of before the first fixture.
        store = tempfile.mkdtemp(prefix="compiled-once-")
        config.add_cleanup(lambda: shutil.rmtree(store))
        os.environ[compile_once.STORE] = store
        for each in ("C", "CXX"):
            launcher = f"{sys.executable};{compile_once.__file__}"
            os.environ[f"CMAKE_{each}_COMPILER_LAUNCHER"] = launcher


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def run_cache(run_folder: Path) -> Iterator[Path]:
    """The run's own cache of unpacked builds."""
    folder = run_folder / "cache"
    folder.mkdir(exist_ok=True, mode=0o700)
    before = os.environ.get("TORCHSPAN_CACHE")
    os.environ["TORCHSPAN_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["TORCHSPAN_CACHE"]
    else:
        os.environ["TORCHSPAN_CACHE"] = before


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def model_file(run_folder: Path) -> Callable[[str], Path]:
    """Gives the path of a model file of the zoo, which this run builds once."""

    def find(name: str) -> Path:
        path = run_folder / zoo.ZOO[name].file
        with _locked(run_folder / f"{name}.lock"):
            if not path.exists():
                entry = zoo.ZOO[name]
                options = {"tuned": False, **entry.options}
                torchspan.save(entry.make(), path, entry.example(), **options)
        return path

    return find


@pytest.fixture(scope="session")
def mlp_file(model_file: Callable[[str], Path]) -> Path:
    """The MLP 64-256-256-64 for any batch, with a build of its own for one row."""
    return model_file("mlp")


@pytest.fixture
def mlp() -> torch.nn.Module:
    """The module that ``mlp_file`` was saved from."""
    return zoo.ZOO["mlp"].make()


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules that a test imports from its own folder are forgotten after it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
