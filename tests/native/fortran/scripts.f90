! SPDX-License-Identifier: MIT
!> Python scripts: run, train, save, and every error: scripts LEARNING RAISING OTHER_KIND FILE.
program scripts
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use expectation, only: argument, expect, expect_error
  use torchspan
  implicit none

  type(model_type) :: net, raising
  type(error_type), allocatable :: error
  character(len=:), allocatable :: json
  real(real32) :: wide(6, 4), wanted(3, 4), y(3, 4)
  real(real64) :: loss, first
  logical :: completed
  integer :: step

  call random_number(wide)
  wanted = 2*wide(1:6:2, :)
  call net%train(wide(1:6:2, :), wanted, loss, error=error)
  call expect_error(error, error_argument, "not open")
  call net%save(argument(4), error)
  call expect_error(error, error_argument, "not open")
  call net%load(argument(1), "cpu")
  call net%describe(json)
  call expect(index(json, '"kind": "script"') > 0 .and. index(json, '"x"') > 0, "describe")
  call net%train(wide(1:6:2, :), wanted, first, completed)
  call expect(.not. completed, "one step is not all")
  do step = 1, 2000
    call net%train([array(wide(1:6:2, :))], [array(wanted)], loss, completed)
    if (completed) exit
  end do
  call expect(completed .and. loss < 1e-3 .and. first > loss, "training")
  call net%run(wide(1:6:2, :), y)
  call expect(maxval(abs(y - wanted)) < 0.2, "what was learned")
  call net%save(argument(4)//"  ")
  call refuse()

contains

  subroutine refuse()
    call raising%load(argument(2), "cpu")
    call raising%run(wanted, y, error)
    call expect_error(error, error_model, "KeyError: ")
    call expect_error(error, error_model, new_line("a")//"Traceback (most recent call last):")
    call raising%train(wanted, wanted, loss, error=error)
    call expect_error(error, error_model, "defines no function train")
    call raising%save(argument(4), error)
    call expect_error(error, error_model, "defines no function save")
    call raising%load(argument(3), "cpu")
    call raising%train(wanted, wanted, loss, error=error)
    call expect_error(error, error_argument, "only a Python script has")
    call raising%save(argument(4), error)
    call expect_error(error, error_argument, "only a Python script has")
    call net%save("/no/such/folder/file", error)
    call expect_error(error, error_model, "saving failed on cpu:0: ")
    call net%run(wanted, y, error)
    call expect(.not. allocated(error), "it goes on")
  end subroutine refuse

end program scripts
