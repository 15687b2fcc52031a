# SPDX-License-Identifier: MIT
"""One run of the demo as a row of its table: started, timed, and compared with plain PyTorch."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from subprocess import PIPE

import numpy as np

SAID = re.compile(r"^ran on (.+) in ([\d.]+) ms$", re.MULTILINE)
TOLERANCE = 1e-4


@dataclass
class Row:
    """A row: its name, the command, and how to install the command where it may be missing."""

    name: str
    command: list[str]
    ranks: int = 1
    install: str = ""
    raw: bool = False  # writes heating.bin, numbers alone
    where: str = ""
    call: str = ""
    difference: str = ""
    failed: bool = False

    def run(self, folder):
        """Run the command in the folder; it writes ``heating.npy`` and says where and how long."""
        if shutil.which(self.command[0]) is None:
            self.where = f"skipped: {self.command[0]} is missing; {self.install}"
            return
        for name in ("heating.npy", "heating.bin"):
            (folder / name).unlink(missing_ok=True)
        print(f"{self.name} ...", flush=True)
        environ = os.environ | share_machine(self.ranks)
        done = subprocess.run(self.command, cwd=folder, env=environ, text=True, stdout=PIPE)
        said = SAID.search(done.stdout)
        if done.returncode or said is None:
            self.where, self.failed = f"failed with status {done.returncode}; see above", True
            return
        reference = np.load(folder / "reference.npy")
        if self.raw:
            heating = np.fromfile(folder / "heating.bin", np.float32).reshape(reference.shape)
        else:
            heating = np.load(folder / "heating.npy")
        largest = float(np.abs(heating - reference).max())
        self.where, self.call, self.difference = said[1], f"{said[2]} ms", f"{largest:.1e}"
        self.failed = not largest <= TOLERANCE


def share_machine(ranks):
    """Variables with which each rank takes its share of the cores, and root may use Open MPI."""
    root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") if os.geteuid() == 0 else ()
    share = {"OMP_NUM_THREADS": str(max(1, os.cpu_count() // ranks))} if ranks > 1 else {}
    return share | dict.fromkeys(root, "1")
