! SPDX-License-Identifier: MIT
!> Run the saved SimpleNet from Fortran.
program simplenet_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: torch_delete, torch_kCPU, torch_model, torch_model_forward, torch_model_load, &
    torch_tensor, torch_tensor_from_array
  implicit none

  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  character(len=256) :: path
  real(real32), target :: x(5), y(5)

  if (command_argument_count() /= 1) error stop "usage: simplenet_infer_fortran MODEL"
  call get_command_argument(1, path)

  x = [0.0, 1.0, 2.0, 3.0, 4.0]
  call torch_tensor_from_array(inputs(1), x, torch_kCPU)
  call torch_tensor_from_array(outputs(1), y, torch_kCPU)
  call torch_model_load(model, path, torch_kCPU)
  call torch_model_forward(model, inputs, outputs)
  print '(5(f5.1, :, ","))', y

  call torch_delete(model)
  call torch_delete(inputs)
  call torch_delete(outputs)
end program simplenet_infer_fortran
