! SPDX-License-Identifier: MIT
!> A model of two inputs and two outputs, of different shapes.
program multi_io_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: torch_delete, torch_kCPU, torch_model, torch_model_forward, torch_model_load, &
    torch_tensor, torch_tensor_from_array
  implicit none

  type(torch_model) :: model
  type(torch_tensor) :: inputs(2), outputs(2)
  character(len=256) :: path
  real(real32), target :: velocity(2, 3), mass(2, 1), momentum(2, 3), energy(2, 1)
  integer :: particle

  if (command_argument_count() /= 1) error stop "usage: multi_io_infer_fortran MODEL"
  call get_command_argument(1, path)

  velocity(1, :) = [1.0, 2.0, 2.0]
  velocity(2, :) = [0.0, -3.0, 4.0]
  mass(:, 1) = [2.0, 0.5]
  call torch_tensor_from_array(inputs(1), velocity, torch_kCPU)
  call torch_tensor_from_array(inputs(2), mass, torch_kCPU)
  call torch_tensor_from_array(outputs(1), momentum, torch_kCPU)
  call torch_tensor_from_array(outputs(2), energy, torch_kCPU)

  call torch_model_load(model, path, torch_kCPU)
  call torch_model_forward(model, inputs, outputs)
  do particle = 1, 2
    print '("momentum", 3f6.2, ", energy", f6.2)', momentum(particle, :), energy(particle, 1)
  end do

  call torch_delete(model)
  call torch_delete(inputs)
  call torch_delete(outputs)
end program multi_io_infer_fortran
