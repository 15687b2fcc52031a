! SPDX-License-Identifier: MIT
!> One module, run by four threads at once.
program threads
  use, intrinsic :: iso_fortran_env, only: real32
  use torch_ftn
  implicit none

  type(torch_module) :: net
  character(len=512) :: path
  integer :: i, wrong

  call get_command_argument(1, path)
  call net%load(path)
  wrong = 0
  !$omp parallel do num_threads(4) reduction(+:wrong)
  do i = 1, 400
    wrong = wrong + run(real(i, real32))
  end do
  print "(i0)", wrong

contains

  function run(value) result(wrong)
    real(real32), intent(in) :: value
    integer :: wrong

    type(torch_tensor_wrap) :: inputs
    type(torch_tensor) :: output
    real(real32) :: x(50)
    real(real32), pointer :: y(:)

    x = value
    call inputs%create()
    call inputs%add_array(x)
    call net%forward(inputs, output)
    call output%to_array(y)
    wrong = count(y /= 2*value)
  end function run

end program threads
