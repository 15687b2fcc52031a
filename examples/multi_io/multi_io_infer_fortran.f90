! SPDX-License-Identifier: MIT
!> Three inputs, one of them shared by all columns, and two outputs, over two virtual CPUs.
program multi_io_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use torchspan, only: array, model_type
  implicit none

  integer, parameter :: levels = 40, columns = 1001
  type(model_type) :: net
  real(real32) :: profile(levels, columns), surface(2, columns), grid(levels)
  real(real32) :: rates(levels, columns), cover(1, columns)
  integer :: row, level

  do row = 1, columns
    profile(:, row) = [(real(mod(row - 1 + 3*level, 17), real32)/17, level=0, levels - 1)]
    surface(:, row) = [(real(mod(2*(row - 1) + level, 5), real32)/5, level=0, 1)]
  end do
  grid = [(real(level, real32)/(levels - 1), level=0, levels - 1)]

  call net%load("heating.pt2", "cpu:0,cpu:1")
  call net%run([array(profile), array(surface), array(grid)], [array(rates), array(cover)])
  print '("mean rate", f8.4, ", cover", f8.4)', &
    sum(real(rates, real64))/size(rates), sum(real(cover, real64))/size(cover)
end program multi_io_infer_fortran
