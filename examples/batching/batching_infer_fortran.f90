! SPDX-License-Identifier: MIT
!> One model for any number of rows: a column, a row of columns, and a whole grid in one call.
program batching_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use torchspan, only: model_type
  implicit none

  integer, parameter :: levels = 4, nx = 6, ny = 5
  type(model_type) :: net
  real(real32), target :: grid(levels, nx, ny), whole(levels, nx, ny)
  real(real32), pointer :: columns(:, :), results(:, :)
  real(real32) :: one(levels, 1), row(levels, nx)
  integer :: i

  grid = reshape([(real(mod(i, 11), real32)/11, i=0, size(grid) - 1)], shape(grid))
  ! The model takes (batch, levels), which is (levels, batch) here: the same memory with its last
  ! two dimensions seen as one.
  columns(1:levels, 1:nx*ny) => grid
  results(1:levels, 1:nx*ny) => whole

  call net%load("column.pt2", "cpu")
  call net%run(grid(:, 1:1, 1), one)
  call net%run(grid(:, :, 1), row)
  call net%run(columns, results)
  print '("sums of 1, ", i0, " and ", i0, " columns:", 3f9.4)', nx, nx*ny, &
    sum(real(one, real64)), sum(real(row, real64)), sum(real(whole, real64))
end program batching_infer_fortran
