! SPDX-License-Identifier: MIT
!> One model for one row, for a batch of rows and for a batch of two dimensions.
program batching_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: torch_delete, torch_kCPU, torch_model, torch_model_forward, torch_model_load, &
    torch_tensor, torch_tensor_from_array
  implicit none

  integer, parameter :: features = 5
  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  character(len=256) :: path
  real(real32), target :: x1(features), y1(features)
  real(real32), target :: x2(4, features), y2(4, features)
  real(real32), target :: x3(2, 3, features), y3(2, 3, features)
  integer :: row

  if (command_argument_count() /= 1) error stop "usage: batching_infer_fortran MODEL"
  call get_command_argument(1, path)
  call torch_model_load(model, path, torch_kCPU)

  x1 = 1
  call torch_tensor_from_array(inputs(1), x1, torch_kCPU)
  call torch_tensor_from_array(outputs(1), y1, torch_kCPU)
  call torch_model_forward(model, inputs, outputs)
  print '("one row:     ", 5f6.1)', y1
  call torch_delete(inputs)
  call torch_delete(outputs)

  x2 = spread([(real(row, real32), row=1, 4)], dim=2, ncopies=features)
  call torch_tensor_from_array(inputs(1), x2, torch_kCPU)
  call torch_tensor_from_array(outputs(1), y2, torch_kCPU)
  call torch_model_forward(model, inputs, outputs)
  do row = 1, 4
    print '("row ", i0, " of 4:  ", 5f6.1)', row, y2(row, :)
  end do
  call torch_delete(inputs)
  call torch_delete(outputs)

  x3 = reshape([(real(row, real32), row=1, size(x3))], shape(x3))
  call torch_tensor_from_array(inputs(1), x3, torch_kCPU)
  call torch_tensor_from_array(outputs(1), y3, torch_kCPU)
  call torch_model_forward(model, inputs, outputs)
  print '("row 2, 3 of a grid:", 5f6.1)', y3(2, 3, :)

  call torch_delete(inputs)
  call torch_delete(outputs)
  call torch_delete(model)
end program batching_infer_fortran
