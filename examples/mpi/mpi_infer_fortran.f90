! SPDX-License-Identifier: MIT
!> Run the saved SimpleNet on every rank, each with an input and, where there are many, a device.
program mpi_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use mpi_f08, only: mpi_comm_rank, mpi_comm_world, mpi_finalize, mpi_init
  use torchspan, only: model_type
  implicit none

  type(model_type) :: net
  character(len=256) :: path
  real(real32) :: x(5, 1), y(5, 1)
  integer :: rank

  call mpi_init()
  call mpi_comm_rank(mpi_comm_world, rank)
  if (command_argument_count() /= 1) error stop "usage: mpi_infer_fortran MODEL"
  call get_command_argument(1, path)

  x(:, 1) = [0.0, 1.0, 2.0, 3.0, 4.0] + rank
  print '("input on rank ", i0, ": [", 4(f5.1, ","), f5.1, "]")', rank, x
  call net%load(path, "rank")
  call net%run(x, y)
  print '("output on rank ", i0, ": [", 4(f5.1, ","), f5.1, "]")', rank, y
  call mpi_finalize()
end program mpi_infer_fortran
