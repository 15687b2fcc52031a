# SPDX-License-Identifier: MIT
"""Projects that find FTorch with CMake and with pkg-config find torchspan's in its prefix."""

from tests.native.fortran_programs import call

PROGRAM = """program small
  use ftorch, only: torch_delete, torch_kCPU, torch_tensor, torch_tensor_from_array
  implicit none
  type(torch_tensor) :: tensor
  real, target :: x(2) = 1
  call torch_tensor_from_array(tensor, x, torch_kCPU)
  print "(a, i0)", "rank ", tensor%get_rank()
  call torch_delete(tensor)
end program small
"""
CMAKE = """cmake_minimum_required(VERSION 3.15...3.31)
project(small LANGUAGES Fortran)
find_package(FTorch 1.0 REQUIRED)
add_executable(small small.f90)
target_link_libraries(small PRIVATE FTorch::ftorch)
"""
MAKE = """small: small.f90
\t$(FC) $(shell pkg-config --cflags FTorch) $< -o $@ $(shell pkg-config --libs FTorch)
"""


def test_cmake(ftorch, tmp_path):
    (tmp_path / "small.f90").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    options = [
        f"-DCMAKE_PREFIX_PATH={ftorch.prefix}",
        f"-DCMAKE_Fortran_COMPILER={ftorch.compiler}",
    ]
    call(["cmake", "-S", tmp_path, "-B", tmp_path / "build", *options])
    call(["cmake", "--build", tmp_path / "build"])
    assert call([tmp_path / "build" / "small"]).stdout == "rank 1\n"


def test_make(ftorch, tmp_path):
    (tmp_path / "small.f90").write_text(PROGRAM)
    (tmp_path / "Makefile").write_text(MAKE)
    path = {"PKG_CONFIG_PATH": str(ftorch.prefix / "lib" / "pkgconfig")}
    call(["make", f"FC={ftorch.compiler}"], cwd=tmp_path, **path)
    assert call([tmp_path / "small"]).stdout == "rank 1\n"
