! SPDX-License-Identifier: MIT
!> What only arguments without array() take: expressions, components of an array of a type, and
!> assumed-size arrays, which are refused with a message. The model doubles.
program plain
  use, intrinsic :: iso_fortran_env, only: real32
  use expectation, only: argument, expect, expect_error
  use torchspan, only: error_argument, error_type, model_type, register, unregister
  implicit none

  type :: point_type
    real(real32) :: height, speed
  end type point_type

  type(model_type) :: twice
  integer :: i

  call twice%load(argument(1), "cpu")
  call take_components()
  call take_expressions()
  call refuse_assumed_size(reshape([(real(i, real32), i=1, 6)], [2, 3]))

contains

  subroutine take_components()
    type(point_type) :: points(4)

    points%height = [1, 2, 3, 4]
    points%speed = 0
    call twice%run(points%height, points%speed)
    call expect(all(points%speed == [2, 4, 6, 8]), "components of an array of a type")
  end subroutine take_components

  subroutine take_expressions()
    real(real32) :: x(4), y(2, 2)

    x = [1, 2, 3, 4]
    call twice%run(reshape(x, [2, 2]), y)
    call expect(all(reshape(y, [4]) == 2*x), "an expression")
  end subroutine take_expressions

  subroutine refuse_assumed_size(x)
    real(real32), intent(in), target :: x(2, *)

    type(error_type), allocatable :: error
    real(real32) :: y(2, 3)

    call twice%run(x, y, error)
    call expect_error(error, error_argument, "input 1 is an assumed-size array")
    call twice%run(x(:, 1:3), y)
    call expect(all(y == 2*x(:, 1:3)), "a section of an assumed-size array")
    call register(x, error)
    call expect_error(error, error_argument, "array 1 is an assumed-size array")
    call register(x(:, 1:2))
    call unregister(x(:, 1:2))
  end subroutine refuse_assumed_size

end program plain
