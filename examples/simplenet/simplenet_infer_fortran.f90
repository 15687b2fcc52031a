! SPDX-License-Identifier: MIT
!> Run the saved SimpleNet from Fortran.
program simplenet_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use torchspan, only: model_type
  implicit none

  type(model_type) :: net
  character(len=256) :: path
  real(real32) :: x(5, 1), y(5, 1)

  if (command_argument_count() /= 1) error stop "usage: simplenet_infer_fortran MODEL"
  call get_command_argument(1, path)

  x(:, 1) = [0.0, 1.0, 2.0, 3.0, 4.0]
  call net%load(path, "cpu")
  call net%run(x, y)
  print '(5(f5.1, :, ","))', y
end program simplenet_infer_fortran
