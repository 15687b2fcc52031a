! SPDX-License-Identifier: MIT
!> Train and run a model that is a Python script.
program python_training
  use, intrinsic :: iso_fortran_env, only: real32
  use torch_ftn, only: torch_pymodule, torch_tensor, torch_tensor_wrap
  implicit none

  integer, parameter :: batch = 64
  real(real32) :: x(4, batch), y(2, batch), loss
  real(real32), pointer :: learnt(:, :)
  type(torch_pymodule) :: script
  type(torch_tensor) :: target, output
  type(torch_tensor_wrap) :: inputs
  character(len=1024) :: path, trained
  logical :: is_completed
  integer :: i, j

  call get_command_argument(1, path)
  call get_command_argument(2, trained)
  if (path == "") error stop "python_training MODEL.py [WEIGHTS]"

  do i = 1, batch
    x(:, i) = [(sin(real(i*j)), j=1, 4)]
    y(:, i) = [sum(x(:, i)), x(1, i) - 2.0*x(4, i) + 1.0]
  end do

  call script%load(path)
  call inputs%create()
  call inputs%add_array(x)
  call target%from_array(y)
  is_completed = .false.
  do while (.not. is_completed)
    is_completed = script%train(inputs, target, loss)
  end do

  call script%forward(inputs, output)
  call output%to_array(learnt)
  print "(a, 2f6.2)", "wanted:", y(:, 1)
  print "(a, 2f6.2)", "learnt:", learnt(:, 1)
  if (trained /= "") call script%save(trained)
  print "(a)", "training is completed"
end program python_training
