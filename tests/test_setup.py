# SPDX-License-Identifier: MIT
"""tools/setup and tools/system_packages, in a folder of their own with a pretended machine.

The machine is a PATH of links to the commands that it has. Its python is a script that answers
`-m venv` and `-m pip` itself, so that nothing is downloaded, and is the real one for the rest.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ["bash", "cat", "cksum", "dirname", "env", "flock", "id", "mkdir", "mktemp", "cp", "rm"]
COMPILERS = ["g++", "gfortran", "mpiexec", "mpifort", "pkg-config", "ssh"]

PYTHON = f"""#!/bin/bash
case "$*" in
    *_base_executable*) echo "$MACHINE/bin/python3" ;;
    *"import ensurepip"*) [[ ! -e $MACHINE/no-ensurepip ]] ;;
    *Python.h*) [[ ! -e $MACHINE/no-headers ]] ;;
    "-m venv --clear .venv")
        rm -rf .venv
        mkdir -p .venv/bin
        cp "$MACHINE/bin/python3" .venv/bin/python
        echo venv >>"$MACHINE/log" ;;
    *"-m pip "*)
        echo "pip ${{*: -2}}" >>"$MACHINE/log"
        [[ ! -e $MACHINE/no-network ]] ;;
    *) exec {sys.executable} "$@" ;;
esac
"""


class Machine:
    """A pretended machine and a checkout on it."""

    def __init__(self, folder):
        self.path = folder / "bin"
        self.checkout = folder / "checkout"
        self.log = folder / "log"
        self.folder = folder
        self.path.mkdir()
        for name in TOOLS:
            (self.path / name).symlink_to(shutil.which(name))
        self.give("python3", PYTHON)
        for name in COMPILERS:
            self.give(name, "#!/bin/bash\n")
        self.give("id", "#!/bin/bash\necho 1000\n")
        for name in ("tools/setup", "tools/system_packages", "pyproject.toml", "constraints.txt"):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.checkout / name)

    def give(self, name, script):
        (self.path / name).unlink(missing_ok=True)
        (self.path / name).write_text(script, encoding="utf-8")
        (self.path / name).chmod(0o755)

    def lose(self, *names):
        for name in names:
            (self.path / name).unlink()

    def mark(self, name, there=True):
        (self.folder / name).touch() if there else (self.folder / name).unlink()

    def run(self, command="tools/setup", *words, **variables):
        environ = {"PATH": str(self.path), "MACHINE": str(self.folder), **variables}
        self.log.write_text("", encoding="utf-8")
        return subprocess.run(
            [self.checkout / command, *words],
            env=environ, cwd=self.folder, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def logged(self):
        return self.log.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


INSTALLED = ["pip constraints.txt torch", "pip hatchling editables", "pip --editable .[dev]"]


def test_the_first_run_installs_torch_first_and_the_second_has_nothing_to_do(machine):
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert machine.logged() == ["venv", *INSTALLED]
    done = machine.run()
    assert (done.returncode, machine.logged(), done.stdout, done.stderr) == (0, [], "", "")


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_source_installs_again_into_the_same_environment(machine, name):
    machine.run()
    with (machine.checkout / name).open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    assert machine.run().returncode == 0
    assert machine.logged() == INSTALLED


def test_a_setup_that_did_not_finish_starts_afresh(machine):
    machine.mark("no-network")
    assert machine.run().returncode != 0
    assert machine.logged() == ["venv", INSTALLED[0]]
    machine.mark("no-network", there=False)
    assert machine.run().returncode == 0
    assert machine.logged() == ["venv", *INSTALLED]


def test_a_moved_checkout_starts_afresh(machine):
    machine.run()
    machine.checkout = machine.checkout.rename(machine.folder / "moved")
    assert machine.run().returncode == 0
    assert machine.logged() == ["venv", *INSTALLED]


def test_an_environment_made_by_hand_is_kept(machine):
    (machine.checkout / ".venv" / "bin").mkdir(parents=True)
    shutil.copy2(machine.path / "python3", machine.checkout / ".venv" / "bin" / "python")
    assert machine.run().returncode == 0
    assert machine.logged() == INSTALLED


def test_a_broken_environment_is_made_again(machine):
    machine.run()
    python = machine.checkout / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to(machine.folder / "gone")
    assert machine.run().returncode == 0
    assert machine.logged() == ["venv", *INSTALLED]


def test_an_old_python_is_refused_by_name(machine):
    machine.give("python3.10", "#!/bin/bash\necho 3.10.0 /usr\nexit 1\n")
    done = machine.run(PYTHON="python3.10")
    assert done.returncode == 1
    assert "torchspan needs Python 3.11, 3.12 or 3.13; python3.10 has none" in done.stderr
    machine.lose("python3")
    assert "the path has none of them" in machine.run().stderr


def test_missing_packages_are_said_with_the_command_on_every_run(machine):
    machine.lose("gfortran", "mpiexec", "mpifort", "ssh")
    machine.mark("no-headers")
    minor = f"python3.{sys.version_info.minor}"
    for _ in range(2):
        done = machine.run()
        assert done.returncode == 0
        assert (
            f"sudo apt-get install {minor}-dev gfortran openmpi-bin openssh-client libopenmpi-dev"
            in done.stderr
        )
        assert "without it, Fortran is skipped" in done.stderr
        assert "without it, runs under mpiexec are skipped" in done.stderr
    assert machine.logged() == []


def test_an_mpi_without_its_fortran_module_is_found_out(machine):
    machine.give("mpifort", "#!/bin/bash\nexit 1\n")
    assert "libopenmpi-dev" in machine.run().stderr


def test_without_a_compiler_setup_stops_and_says_so(machine):
    machine.lose("g++")
    done = machine.run()
    assert done.returncode == 1
    assert "sudo apt-get install g++\n" in done.stderr
    assert "cannot go on without a C++ compiler" in done.stderr
    assert not (machine.checkout / ".venv").exists()


def test_without_venv_setup_stops_and_says_so(machine):
    machine.mark("no-ensurepip")
    done = machine.run()
    assert done.returncode == 1
    assert f"sudo apt-get install python3.{sys.version_info.minor}-venv\n" in done.stderr


def test_root_installs_what_is_missing(machine):
    machine.lose("gfortran", "ssh")
    machine.give("id", "#!/bin/bash\necho 0\n")
    machine.give(
        "apt-get",
        '#!/bin/bash\necho "apt-get $*" >>"$MACHINE/log"\n'
        '[[ $* == *install* ]] && cp "$MACHINE"/bin/{mpiexec,gfortran} && '
        'cp "$MACHINE"/bin/{mpiexec,ssh}\nexit 0\n',
    )
    done = machine.run("tools/system_packages", "python3")
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.logged() == [
        "apt-get -qq update",
        "apt-get -qq install --yes --no-install-recommends gfortran openssh-client",
    ]


def test_a_failing_apt_get_is_said_and_the_rest_goes_on(machine):
    machine.lose("gfortran")
    machine.give("id", "#!/bin/bash\necho 0\n")
    machine.give("apt-get", "#!/bin/bash\necho 'no network' >&2\nexit 100\n")
    done = machine.run("tools/system_packages", "python3")
    assert done.returncode == 0
    assert "no network" in done.stderr
    assert "apt-get failed" in done.stderr
    assert "sudo apt-get install gfortran\n" in done.stderr


@pytest.mark.skipif(shutil.which("mpifort") is None, reason="needs mpifort to try it for real")
def test_the_real_mpi_is_recognised(tmp_path):
    done = subprocess.run(
        [ROOT / "tools" / "system_packages", sys.executable],
        env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "libopenmpi-dev" not in done.stderr
    assert list(tmp_path.iterdir()) == []
