! SPDX-License-Identifier: MIT
!> Ten threads call one model at once, and others load and close theirs meanwhile.
program threads
  use, intrinsic :: iso_fortran_env, only: real32
  use expectation, only: argument, expect
  use torchspan, only: model_type
  implicit none

  type(model_type) :: net
  character(len=:), allocatable :: path
  integer :: thread, wrong

  path = argument(1)
  call net%load(path, "cpu")
  wrong = 0
  !$omp parallel do num_threads(10) schedule(static, 1) reduction(+:wrong)
  do thread = 1, 10
    wrong = wrong + call_often(thread)
  end do
  !$omp end parallel do
  call expect(wrong == 0, "ten threads")

contains

  function call_often(number) result(wrong)
    integer, intent(in) :: number
    integer :: wrong

    type(model_type) :: own, shared
    real(real32) :: x(5, 2), y(5, 2)
    integer :: step

    wrong = 0
    shared = net
    do step = 1, 20
      x = number*step
      call shared%run(x, y)
      if (any(abs(y - 2*x) > 1e-3)) wrong = wrong + 1
      if (step == 10) call own%load(path, "cpu")
    end do
    call own%run(x, y)
    if (any(abs(y - 2*x) > 1e-3)) wrong = wrong + 1
  end function call_often

end program threads
