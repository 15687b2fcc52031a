! SPDX-License-Identifier: MIT
!> Time calls of one model three ways, in turn: through torchspan, as plain TorchScript, and, where
!> a build is named, through that build's container alone.
!>
!>     calls NET.pt2 NET.pt WIDTH ROWS [BUILD.so]
!>
!> Prints the median microseconds a call of each.
program calls
  use, intrinsic :: iso_c_binding, only: c_char, c_float, c_int, c_int64_t, c_null_char
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use timing, only: median, text, whole
  use torchspan, only: model_type
  implicit none

  interface
    function plain_open(path, input, rows, width) result(opened) bind(c)
      import :: c_char, c_float, c_int, c_int64_t
      character(kind=c_char), intent(in) :: path(*)
      real(c_float), intent(in) :: input(*)
      integer(c_int64_t), value :: rows, width
      integer(c_int) :: opened
    end function plain_open

    subroutine plain_run(output) bind(c)
      import :: c_float
      real(c_float), intent(out) :: output(*)
    end subroutine plain_run

    function bare_open(path, input, rows, width) result(opened) bind(c)
      import :: c_char, c_float, c_int, c_int64_t
      character(kind=c_char), intent(in) :: path(*)
      real(c_float), intent(in) :: input(*)
      integer(c_int64_t), value :: rows, width
      integer(c_int) :: opened
    end function bare_open

    subroutine bare_run(output) bind(c)
      import :: c_float
      real(c_float), intent(out) :: output(*)
    end subroutine bare_run
  end interface

  integer, parameter :: rounds = 31
  type(model_type) :: net
  real(c_float), allocatable, target :: x(:, :), y(:, :)
  real(real64) :: times(rounds, 3)
  integer :: width, rows, ways, round, way, each, i

  width = whole(3)
  rows = whole(4)
  ways = merge(3, 2, command_argument_count() > 4)
  allocate (x(width, rows), y(width, rows))
  x = reshape([(real(mod(i, 31)) / 31, i=0, width * rows - 1)], shape(x))
  call net%load(text(1), "cpu")
  if (plain_open(text(2)//c_null_char, x, int(rows, int64), int(width, int64)) == 0) &
    error stop "plain"
  if (ways == 3) then
    if (bare_open(text(5)//c_null_char, x, int(rows, int64), int(width, int64)) == 0) &
      error stop "bare"
  end if

  do way = 1, ways
    times(1, way) = time_calls(way, 10)
  end do
  each = 1 + int(10000 / times(1, 2))
  do round = 1, rounds
    do way = 1, ways
      times(round, way) = time_calls(way, each)
    end do
  end do
  print "(3f14.3)", (median(times(:, way)), way=1, ways)

contains

  function time_calls(way, count) result(microseconds)
    integer, intent(in) :: way, count
    real(real64) :: microseconds
    integer(int64) :: start, finish, rate
    integer :: call_number

    call system_clock(start, rate)
    do call_number = 1, count
      select case (way)
      case (1)
        call net%run(x, y)
      case (2)
        call plain_run(y)
      case (3)
        call bare_run(y)
      end select
    end do
    call system_clock(finish)
    microseconds = 1e6_real64 * real(finish - start, real64) / real(rate, real64) / count
  end function time_calls

end program calls
