! SPDX-License-Identifier: MIT
!> Time module torch_ftn against the C interface under it, in turn.
!>
!>     torch_ftn NET.pt WIDTH
!>
!> Prints the microseconds a call in the quickest of 31 rounds: of forward, of tspan_module_run, and
!> of making a tensor from an array and letting it go.
program time_torch_ftn
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use torch_ftn, only: torch_module, torch_tensor, torch_tensor_wrap
  implicit none

  interface
    function c_load(path, device, module) result(status) bind(c, name="tspan_module_load")
      import :: c_char, c_int, c_ptr
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(in), value :: device
      type(c_ptr), intent(out) :: module
      integer(c_int) :: status
    end function c_load

    function c_run(module, inputs, count, outputs, room) result(status) &
      bind(c, name="tspan_module_run")
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), intent(in), value :: module
      type(c_ptr), intent(in) :: inputs(*), outputs(*)
      integer(c_size_t), intent(in), value :: count, room
      integer(c_int) :: status
    end function c_run
  end interface

  integer, parameter :: rounds = 31, calls = 5000
  type(torch_module) :: net
  type(torch_tensor) :: x, y, room
  type(torch_tensor_wrap) :: inputs
  type(c_ptr) :: module
  real(real32), allocatable :: a(:, :), b(:, :)
  real(real64) :: times(rounds, 3)
  character(len=1024) :: path, number
  integer :: width, round, way

  call get_command_argument(1, path)
  call get_command_argument(2, number)
  read (number, *) width
  allocate (a(width, 1), b(width, 1), source=0.5)
  call net%load(path)
  if (c_load(trim(path)//c_null_char, c_null_ptr, module) /= 0) error stop "load"
  call x%from_array(a)
  call room%from_array(b)
  call inputs%add_tensor(x)
  do round = 1, rounds
    do way = 1, 3
      times(round, way) = measure(way)
    end do
  end do
  print "(3f9.3)", minval(times, 1)

contains

  function measure(way) result(time)
    integer, intent(in) :: way
    real(real64) :: time

    type(c_ptr) :: given(1), taken(1)
    integer(int64) :: begin, end, rate
    integer :: i

    given = x%get_handle()
    taken = room%get_handle()
    call system_clock(begin, rate)
    do i = 1, calls
      select case (way)
      case (1)
        call net%forward(inputs, y)
      case (2)
        if (c_run(module, given, 1_c_size_t, taken, 1_c_size_t) /= 0) error stop "run"
      case (3)
        call make()
      end select
    end do
    call system_clock(end)
    time = 1e6_real64*real(end - begin, real64)/real(rate, real64)/calls
  end function measure

  subroutine make()
    type(torch_tensor) :: tensor

    call tensor%from_array(a)
  end subroutine make

end program time_torch_ftn
