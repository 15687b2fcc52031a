! SPDX-License-Identifier: MIT
!> Time calls of one model through torchspan's own module and through ftorch, in turn, and how long
!> ftorch takes to make a tensor over an array and delete it.
!>
!>     ftorch NET WIDTH
!>
!> Prints the median microseconds of each.
program ftorch_calls
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use ftorch, only: torch_delete, torch_kCPU, torch_model, torch_model_forward, torch_model_load, &
    torch_tensor, torch_tensor_from_array
  use timing, only: median, text, whole
  use torchspan, only: model_type
  implicit none

  integer, parameter :: rounds = 31, each = 2000
  type(model_type) :: net
  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  ! One row of numbers, as each of the interfaces has its dimensions.
  real(real32), allocatable, target :: x(:, :), y(:, :), row(:, :), result(:, :)
  real(real64) :: times(rounds, 3)
  integer :: width, round, way, i

  width = whole(2)
  allocate (x(width, 1), y(width, 1), row(1, width), result(1, width))
  x(:, 1) = [(real(mod(i, 31), real32)/31, i=0, width - 1)]
  row(1, :) = x(:, 1)
  call net%load(text(1), "cpu")
  call torch_model_load(model, text(1), torch_kCPU)
  call torch_tensor_from_array(inputs(1), row, torch_kCPU)
  call torch_tensor_from_array(outputs(1), result, torch_kCPU)

  do way = 1, 3
    times(1, way) = time_calls(way)
  end do
  do round = 1, rounds
    do way = 1, 3
      times(round, way) = time_calls(way)
    end do
  end do
  if (any(abs(y(:, 1) - result(1, :)) > 1e-6)) error stop "the two ways differ"
  print "(3f14.3)", (median(times(:, way)), way=1, 3)

contains

  function time_calls(way) result(microseconds)
    integer, intent(in) :: way
    real(real64) :: microseconds
    type(torch_tensor) :: tensor
    integer(int64) :: start, finish, rate
    integer :: call_number

    call system_clock(start, rate)
    do call_number = 1, each
      select case (way)
      case (1)
        call net%run(x, y)
      case (2)
        call torch_model_forward(model, inputs, outputs)
      case (3)
        call torch_tensor_from_array(tensor, row, torch_kCPU)
        call torch_delete(tensor)
      end select
    end do
    call system_clock(finish)
    microseconds = 1e6_real64*real(finish - start, real64)/real(rate, real64)/each
  end function time_calls

end program ftorch_calls
