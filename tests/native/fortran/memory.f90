! SPDX-License-Identifier: MIT
!> Call a model many times, rightly and wrongly, and print how many pages of memory that took for
!> good: memory MODEL CALLS.
program memory
  use, intrinsic :: iso_fortran_env, only: real32
  use expectation, only: argument
  use torchspan, only: error_argument, error_type, model_type, request_type
  implicit none

  type(model_type) :: net
  character(len=:), allocatable :: number
  integer :: before, calls, i

  call net%load(argument(1), "cpu")
  number = argument(2)
  read (number, *) calls
  do i = 1, 2000
    call call_model(i)
  end do
  before = resident()
  do i = 1, calls
    call call_model(i)
  end do
  print '(i0)', resident() - before

contains

  subroutine call_model(step)
    integer, intent(in) :: step

    type(model_type) :: same
    type(request_type) :: request
    type(error_type), allocatable :: error
    real(real32), asynchronous :: x(5, 2), y(5, 2), wide(6, 2)

    x = real(step)
    wide = 0
    same = net
    if (mod(step, 3) == 0) then
      call same%submit(x, y, request)
      call request%wait()
    else
      call same%run(x, y)
    end if
    if (abs(y(1, 1) - 2*x(1, 1)) > 1e-3*x(1, 1)) error stop "a result is wrong"
    call same%run(wide, y, error)
    if (.not. allocated(error)) error stop "there is no error"
    if (error%code /= error_argument) error stop "another error"
  end subroutine call_model

  function resident() result(pages)
    integer :: pages

    integer :: file, whole

    open (newunit=file, file="/proc/self/statm", action="read", status="old")
    read (file, *) whole, pages
    close (file)
  end function resident

end program memory
