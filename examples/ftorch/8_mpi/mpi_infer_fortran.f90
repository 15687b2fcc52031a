! SPDX-License-Identifier: MIT
!> Run the saved SimpleNet on every rank, each with an input and, where there are any, a GPU.
program mpi_infer_fortran
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: torch_delete, torch_kCPU, torch_kCUDA, torch_model, torch_model_forward, &
    torch_model_load, torch_tensor, torch_tensor_from_array
  use mpi, only: mpi_comm_rank, mpi_comm_world, mpi_finalize, mpi_init
  implicit none

  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  character(len=256) :: path, kind
  real(real32), target :: x(5), y(5)
  integer(c_int) :: device_type, device_index
  integer :: rank, error

  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  if (command_argument_count() < 1) error stop "usage: mpi_infer_fortran MODEL [cuda]"
  call get_command_argument(1, path)
  call get_command_argument(2, kind)
  device_type = merge(torch_kCUDA, torch_kCPU, kind == "cuda")
  device_index = merge(rank, -1, kind == "cuda")

  x = [0.0, 1.0, 2.0, 3.0, 4.0] + rank
  print '("input on rank ", i0, ": [", 4(f5.1, ","), f5.1, "]")', rank, x
  call torch_tensor_from_array(inputs(1), x, device_type, device_index=device_index)
  call torch_tensor_from_array(outputs(1), y, torch_kCPU)
  call torch_model_load(model, path, device_type, device_index=device_index)
  call torch_model_forward(model, inputs, outputs)
  print '("output on rank ", i0, ": [", 4(f5.1, ","), f5.1, "]")', rank, y

  call torch_delete(model)
  call torch_delete(inputs)
  call torch_delete(outputs)
  call mpi_finalize(error)
end program mpi_infer_fortran
