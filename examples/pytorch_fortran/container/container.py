# SPDX-License-Identifier: MIT
"""HPCCM recipe of a container that builds and runs programs written for pytorch-fortran.

    hpccm --recipe container.py --format docker > Dockerfile
    hpccm --recipe container.py --format singularity > torchspan.def

The default image has gfortran. ``--userarg image=NAME`` takes another with apt-get, such as one of
Intel's with ifx or of NVIDIA's with nvfortran.
"""

# ruff: noqa: F821 - HPCCM defines Stage0, USERARG and the building blocks.

Stage0 += comment("SPDX-License-Identifier: MIT")
Stage0 += comment("Written by HPCCM from container.py.", reformat=False)
Stage0 += baseimage(image=USERARG.get("image", "debian:bookworm"), _distro="ubuntu22")
Stage0 += packages(
    ospackages=[
        "ca-certificates", "g++", "gfortran", "git", "make", "pkg-config", "python3",
        "python3-dev", "python3-venv",
    ]
)  # fmt: skip
# What torchspan needs; it is itself installed from the clone that is mounted.
Stage0 += shell(
    commands=[
        "python3 -m venv /opt/torchspan",
        "/opt/torchspan/bin/pip install --no-cache-dir 'torch==2.13.0' numpy rich safetensors "
        "'hatchling>=1.26' 'cmake>=3.25' 'ninja>=1.11'",
    ]
)
Stage0 += environment(variables={"PATH": "/opt/torchspan/bin:$PATH"})
Stage0 += workdir(directory="/mnt/torchspan")
