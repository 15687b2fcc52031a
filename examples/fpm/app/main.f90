! SPDX-License-Identifier: MIT
!> Run the saved SimpleNet from a program that the Fortran Package Manager builds.
program main
  use, intrinsic :: iso_fortran_env, only: real32
  use torchspan, only: model_type
  implicit none

  type(model_type) :: net
  character(len=256) :: path
  real(real32) :: x(5, 2), y(5, 2)

  if (command_argument_count() /= 1) error stop "usage: fpm run -- MODEL"
  call get_command_argument(1, path)

  x(:, 1) = [0.0, 1.0, 2.0, 3.0, 4.0]
  x(:, 2) = x(:, 1) + 1
  call net%load(path, "cpu")
  call net%run(x, y)
  print '(4(f5.1, ","), f5.1)', y
end program main
