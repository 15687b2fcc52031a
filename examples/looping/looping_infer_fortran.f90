! SPDX-License-Identifier: MIT
!> A time loop that calls a model every step, into its own memory, while it computes on.
program looping_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use torchspan, only: model_type, request_type
  implicit none

  integer, parameter :: steps = 20, columns = 3000, levels = 64
  type(model_type) :: net
  type(request_type) :: pending
  real(real32), allocatable, asynchronous :: state(:, :), tendency(:, :)
  real(real32), allocatable :: advected(:, :)
  integer :: step, column, level

  allocate (state(levels, columns), tendency(levels, columns), advected(levels, columns))
  do column = 1, columns
    do level = 1, levels
      state(level, column) = real(mod(7*(column - 1) + 3*(level - 1), 101), real32)/101
    end do
  end do

  call net%load("tendency.pt2", "cpu:0,cpu:1")
  do step = 1, steps
    call net%submit(state, tendency, pending)
    advected = 0.5*cshift(state, -1, dim=2) + 0.5*state ! while the devices work
    call pending%wait()
    state = advected + 0.01*tendency
  end do
  print '("mean", f8.4, ", first", f8.4)', sum(real(state, real64))/size(state), state(1, 1)
end program looping_infer_fortran
