! SPDX-License-Identifier: MIT
!> Two Python scripts at once: run, trained until one says that it is complete, and saved.
program scripts
  use, intrinsic :: iso_fortran_env, only: int32, real32, real64
  use torch_ftn
  implicit none

  type(torch_pymodule) :: one, two
  type(torch_tensor_wrap) :: inputs, scaled
  type(torch_tensor) :: target, output
  character(len=512) :: folder
  real(real32) :: x(2, 3) = 1, loss
  real(real32), pointer :: y(:, :)
  integer :: count

  call get_command_argument(1, folder)
  call one%load(trim(folder)//"/learning.py")
  call two%load(trim(folder)//"/scaling.py")
  call inputs%create()
  call inputs%add_array(x)
  call target%from_array(x)
  count = 1
  do while (.not. one%train(inputs, target, loss))
    count = count + 1
  end do
  call scaled%create()
  call scaled%add_array(x)
  call scaled%add_scalar(3_int32)
  call scaled%add_scalar(0.5_real64)
  call two%forward(scaled, output)
  call output%to_array(y)
  print "(i0, 2f6.2)", count, loss, y(1, 1)
  call one%forward(inputs, output)
  call output%to_array(y)
  print "(2i2, f6.2)", shape(y), y(2, 3)
  call one%save(trim(folder)//"/saved.txt")
end program scripts
