# SPDX-License-Identifier: MIT
"""The Spack package of torchspan: the Python package and, by variants, the libraries for programs.

There is no archive to fetch: `spack develop` names a checkout, as docs/install.md shows.
"""

from spack.package import *


class PyTorchspan(PythonPackage):
    """Run and train PyTorch models on every device, from Python, Fortran and C."""

    license("MIT")

    version("0.1.0")

    variant("c", default=True, description="Build and install the C library")
    variant("fortran", default=True, when="+c", description="And the Fortran module")
    variant("mpi", default=False, description="Ranks on more than one machine under mpiexec")

    depends_on("c", type="build", when="+c")
    depends_on("cxx", type=("build", "run"))  # at run time, to compile models when they are saved
    depends_on("fortran", type="build", when="+fortran")

    depends_on("python@3.11:3.13", type=("build", "run"))
    depends_on("py-hatchling@1.26:", type="build")
    depends_on("py-torch@2.11:2.15", type=("build", "link", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-safetensors@0.4:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-mpi4py@4:", type=("build", "run"), when="+mpi")
    depends_on("cmake@3.25:", type="build", when="+c")
    depends_on("ninja@1.11:", type="build", when="+c")

    @run_after("install", when="+c")
    def install_libraries(self):
        """Compile the libraries against Spack's torch and install them under the prefix."""
        packages = self.spec["python"].package.platlib
        torch = join_path(self.spec["py-torch"].prefix, packages, "torch")
        native = join_path(self.stage.source_path, "src", "torchspan", "native")
        fortran = spack_fc if self.spec.satisfies("+fortran") else "NOTFOUND"
        cmake = Executable("cmake")
        with working_dir("libraries", create=True):
            cmake(
                *("-S", native, "-B", ".", "-G", "Ninja", "-DCMAKE_INSTALL_LIBDIR=lib"),
                f"-DCMAKE_INSTALL_PREFIX={self.prefix}",
                f"-DTORCHSPAN_LIBTORCH={torch}",
                f"-DCMAKE_Fortran_COMPILER={fortran}",
            )
            cmake("--build", ".", "--parallel", str(make_jobs))
            cmake("--install", ".")
