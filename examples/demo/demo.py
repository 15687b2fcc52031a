# SPDX-License-Identifier: MIT
"""The main job in one go: a model saved once, run on every device and on ranks, and compared.

Each row of the table is a program of its own, started here as a user would start it.
"""

import shutil
import sys
from pathlib import Path

from native import find_native_rows
from row import Row
from surrogate import COLUMNS, LEVELS
from table import format_table

import torchspan

HERE = Path(__file__).resolve().parent
NATIVE = Path("build", "native")
MPI = "sudo apt-get install openmpi-bin openssh-client"


def find_rows():
    devices = [str(device) for device in torchspan.devices("all")]
    if devices == ["cpu:0"]:
        devices = ["cpu:0", "cpu:1"]  # virtual ones: the laptop's two GPUs
    surrogate, on_devices, on_ranks = (
        [sys.executable, str(HERE / f"{name}.py")]
        for name in ("surrogate", "on_devices", "on_ranks")
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", on_ranks[1]]
    mpiexec = ["mpiexec", "-np", "2", "--bind-to", "none", *on_ranks]
    return [
        Row("plain PyTorch", surrogate),
        Row("one device", [*on_devices, devices[0]]),
        Row("all devices", [*on_devices, ",".join(devices)]),
        *find_native_rows(NATIVE.resolve(), devices, LEVELS, COLUMNS),
        Row("2 ranks, torchrun", torchrun, ranks=2),
        Row("2 ranks, mpiexec", mpiexec, ranks=2, install=MPI),
    ]


def main():
    folder = Path("build", "demo")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = find_rows()
    for row in rows:
        row.run(folder)
    print(f"\n{format_table(rows)}")
    print(f"\nThe model file and what the last run wrote are in {folder}.")
    return any(row.failed for row in rows)


if __name__ == "__main__":
    sys.exit(main())
