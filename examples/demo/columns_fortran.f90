! SPDX-License-Identifier: MIT
!> The saved network on all devices, called from Fortran: columns.bin to heating.bin.
program columns_fortran
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use torchspan, only: model_type
  implicit none

  integer, parameter :: calls = 5
  type(model_type) :: net
  character(len=256) :: devices, number
  real(real32), allocatable :: columns(:, :), heating(:, :)
  integer :: levels, batch, unit, i
  integer(int64) :: start, finish, rate
  real(real64) :: best

  if (command_argument_count() /= 3) error stop "usage: columns_fortran DEVICES LEVELS BATCH"
  call get_command_argument(1, devices)
  call get_command_argument(2, number)
  read (number, *) levels
  call get_command_argument(3, number)
  read (number, *) batch

  allocate (columns(2*levels, batch), heating(levels, batch))
  open (newunit=unit, file="columns.bin", access="stream", form="unformatted", status="old")
  read (unit) columns
  close (unit)

  call net%load("net.pt2", devices)
  call net%run(columns, heating)
  best = huge(best)
  do i = 1, calls
    call system_clock(start, rate)
    call net%run(columns, heating)
    call system_clock(finish)
    best = min(best, real(finish - start, real64)/real(rate, real64))
  end do
  print '(a, a, a, f0.1, a)', "ran on ", trim(devices), " in ", best*1e3_real64, " ms"

  open (newunit=unit, file="heating.bin", access="stream", form="unformatted", status="replace")
  write (unit) heating
  close (unit)
end program columns_fortran
