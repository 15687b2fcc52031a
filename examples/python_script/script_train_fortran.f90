! SPDX-License-Identifier: MIT
!> Train the network of a Python script from Fortran, save it and run it.
program script_train_fortran
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use torchspan, only: model_type
  implicit none

  type(model_type) :: net
  character(len=256) :: script
  real(real32) :: x(5, 5), twice(5, 5), row(5, 1), result(5, 1)
  real(real64) :: loss
  logical :: completed
  integer :: i

  if (command_argument_count() /= 1) error stop "usage: script_train_fortran SCRIPT"
  call get_command_argument(1, script)
  call net%load(script, "cpu")

  x = 0
  do i = 1, 5
    x(i, i) = 1
  end do
  twice = 2*x
  completed = .false.
  do while (.not. completed)
    call net%train(x, twice, loss, completed)
  end do
  call net%save("doubling.pt")

  row(:, 1) = [0.0, 1.0, 2.0, 3.0, 4.0]
  call net%run(row, result)
  print '(5(f5.1, :, ","))', result
end program script_train_fortran
