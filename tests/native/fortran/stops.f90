! SPDX-License-Identifier: MIT
!> Without an error argument, an error is the program's end.
program stops
  use torchspan, only: model_type, placement_type, request_type
  use expectation, only: argument
  implicit none

  type(model_type) :: net
  type(placement_type) :: placement
  type(request_type) :: request
  real :: x(5, 1), y(4, 1)

  select case (argument(1))
  case ("load")
    call net%load("missing.pt", "cpu")
  case ("run")
    call net%load(argument(2), "cpu")
    call net%run(x, y)
  case ("wait")
    call request%wait()
  case ("placement")
    call placement%find()
  end select
  print '(a)', "went on"
end program stops
