! SPDX-License-Identifier: MIT
!> Every error has a code and a message, and the program goes on.
program failures
  use, intrinsic :: iso_fortran_env, only: int32, real32, real64
  use expectation, only: argument, expect, expect_error
  use torchspan
  implicit none

  character(len=:), allocatable :: path
  type(error_type), allocatable :: error
  type(model_type) :: net, raising, hungry
  type(device_type), allocatable :: devices(:)
  real(real32) :: x(5, 2), y(5, 2)

  path = argument(1)
  call net%run(x, y, error)
  call expect_error(error, error_argument, "not open")
  call net%load("missing.pt", "cpu", error)
  call expect_error(error, error_model_file, "missing.pt")
  call net%load(argument(2), "cpu", error)
  call expect_error(error, error_model_file, "truncated")
  call net%load(path, "cuda:7", error)
  call expect_error(error, error_device, "cuda:7")
  call devices_find("nonsense", devices, error)
  call expect_error(error, error_device, "nonsense")
  call expect(size(devices) == 0, "no devices")

  call net%load(path, "cpu", error)
  call expect(.not. allocated(error), "no error is left")
  call refuse_arrays()
  call raising%load(argument(3), "cpu")
  call raising%run(x, y, error)
  call expect_error(error, error_model, "on purpose")
  call hungry%load(argument(4), "cpu:0,cpu:1")
  call hungry%run(x, y, error)
  call expect_error(error, error_memory, "too little memory")
  call net%close()
  call net%run(x, y, error)
  call expect_error(error, error_argument, "not open")
  call net%load(path, "cpu")
  x = 3
  call net%run(x, y, error)
  call expect(.not. allocated(error) .and. all(y == 6), "it goes on")

contains

  subroutine refuse_arrays()
    real(real64) :: wide(5, 2)
    integer(int32) :: whole(5, 2)
    real(real32) :: narrow(4, 2), few(5, 1), flat(5)
    real(real32), allocatable :: nothing(:, :)

    wide = 1
    whole = 1
    narrow = 1
    flat = 1
    y = 9
    call net%run(wide, y, error)
    call expect_error(error, error_argument, "float64")
    call net%run(x, whole, error)
    call expect_error(error, error_argument, "int32")
    call net%run(narrow, y, error)
    call expect_error(error, error_argument, "4")
    call net%run(flat, y, error)
    call expect_error(error, error_argument, "5")
    call net%run(x, few, error)
    call expect_error(error, error_argument, "1")
    call net%run([array(x), array(x)], y, error)
    call expect_error(error, error_argument, "2")
    call net%run(x, [array(y), array(few)], error)
    call expect_error(error, error_argument, "2")
    call net%run(nothing, y, error)
    call expect(allocated(error), "an array that is not allocated")
    call expect(all(y == 9), "nothing was written")
  end subroutine refuse_arrays

end program failures
