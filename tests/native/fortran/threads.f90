! SPDX-License-Identifier: MIT
!> Ten threads call one model at once, rightly and wrongly, and load and close their own meanwhile.
module calls
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: real32
  use torchspan, only: error_argument, error_type, model_type
  implicit none
  private

  public :: call_often

  type(model_type), public :: net
  character(len=:), allocatable, public :: path
  integer, public :: wrong(10) = -1

contains

  function call_often(argument) result(nothing) bind(c)
    type(c_ptr), intent(in), value :: argument
    type(c_ptr) :: nothing

    type(model_type) :: own, shared
    type(error_type), allocatable :: error
    real(real32) :: x(5, 2), y(5, 2)
    integer(c_int), pointer :: number
    integer :: step, errors

    call c_f_pointer(argument, number)
    errors = 0
    shared = net
    do step = 1, 20
      x = number*step
      call shared%run(x, y)
      if (any(abs(y - 2*x) > 1e-3)) errors = errors + 1
      call refuse(shared, number, error)
      if (.not. allocated(error)) errors = errors + 1
      if (step == 10) call own%load(path, "cpu")
    end do
    call own%run(x, y)
    if (any(abs(y - 2*x) > 1e-3)) errors = errors + 1
    wrong(number) = errors
    nothing = c_null_ptr
  end function call_often

  !> A wrong shape of this thread's own must come back in this thread's message.
  subroutine refuse(model, number, error)
    type(model_type), intent(in) :: model
    integer, intent(in) :: number
    type(error_type), allocatable, intent(out) :: error

    real(real32) :: x(5, 2), y(30 + number, 2)
    character(len=8) :: shape

    x = 0
    write (shape, '("(2, ", i0, ")")') 30 + number
    call model%run(x, y, error)
    if (.not. allocated(error)) return
    if (error%code /= error_argument .or. index(error%message, trim(shape)) == 0) deallocate (error)
  end subroutine refuse

end module calls

program threads
  use, intrinsic :: iso_c_binding, only: c_funloc, c_funptr, c_int, c_loc, c_long, c_null_ptr, c_ptr
  use calls, only: call_often, net, path, wrong
  use expectation, only: argument, expect
  implicit none

  interface
    function pthread_create(thread, attributes, start, argument) result(status) bind(c)
      import :: c_funptr, c_int, c_long, c_ptr
      implicit none
      integer(c_long), intent(out) :: thread
      type(c_ptr), intent(in), value :: attributes, argument
      type(c_funptr), intent(in), value :: start
      integer(c_int) :: status
    end function pthread_create

    function pthread_join(thread, nothing) result(status) bind(c)
      import :: c_int, c_long, c_ptr
      implicit none
      integer(c_long), intent(in), value :: thread
      type(c_ptr), intent(in), value :: nothing
      integer(c_int) :: status
    end function pthread_join
  end interface

  integer(c_long) :: started(10)
  integer(c_int), target :: numbers(10)
  integer :: i

  path = argument(1)
  call net%load(path, "cpu")
  numbers = [(i, i=1, 10)]
  do i = 1, 10
    if (pthread_create(started(i), c_null_ptr, c_funloc(call_often), c_loc(numbers(i))) /= 0) &
      error stop "no thread"
  end do
  do i = 1, 10
    if (pthread_join(started(i), c_null_ptr) /= 0) error stop "no end of a thread"
  end do
  call expect(all(wrong == 0), "ten threads")
end program threads
