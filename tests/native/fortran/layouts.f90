! SPDX-License-Identifier: MIT
!> Arrays of every rank and layout. The model `order` adds 10 a column and 100 a row to its input of
!> dimensions (batch, row, column); the model `twice` doubles.
program layouts
  use, intrinsic :: iso_fortran_env, only: real32
  use expectation, only: argument, expect
  use torchspan, only: array, model_type
  implicit none

  type(model_type) :: order, twice
  integer :: i

  call order%load(argument(1), "cpu")
  call twice%load(argument(2), "cpu")
  call keep_order()
  call take_ranks()
  call take_sections()
  call take_pointers()

contains

  !> x(nx, ny, batch) is (batch, ny, nx) to the model.
  subroutine keep_order()
    real(real32) :: x(3, 2, 4), y(3, 2, 4)
    integer :: column, row
    logical :: right

    x = reshape([(real(i, real32), i=1, size(x))], shape(x))
    call order%run(x, y)
    right = .true.
    do column = 1, 3
      do row = 1, 2
        right = right .and. all(y(column, row, :) == &
          x(column, row, :) + 10*(column - 1) + 100*(row - 1))
      end do
    end do
    call expect(right, "the first dimension is the model's last")
  end subroutine keep_order

  subroutine take_ranks()
    real(real32) :: a(2), b(2, 3), c(2, 3, 2), d(2, 1, 2, 2), e(2, 1, 2, 1, 3)
    real(real32) :: f(2, 1, 2, 1, 2, 2), g(1, 2, 1, 2, 1, 2, 2)

    a = 1; b = 2; c = 3; d = 4; e = 5; f = 6; g = 7
    call twice%run(a, a)
    call twice%run(b, b)
    call twice%run(c, c)
    call twice%run(d, d)
    call twice%run(e, e)
    call twice%run(f, f)
    call twice%run(g, g)
    call expect(all(a == 2) .and. all(b == 4) .and. all(c == 6) .and. all(d == 8) .and. &
      all(e == 10) .and. all(f == 12) .and. all(g == 14), "ranks 1 to 7, in place")
  end subroutine take_ranks

  subroutine take_sections()
    real(real32) :: x(8, 6), y(8, 6)

    x = reshape([(real(i, real32), i=1, size(x))], shape(x))
    y = -1
    call twice%run(x(2:8:3, 1:6:2), y(1:3, 4:6))
    call expect(all(y(1:3, 4:6) == 2*x(2:8:3, 1:6:2)), "a strided input")
    call expect(count(y == -1) == size(y) - 9, "nothing else is written")
    y = -1
    call twice%run(x(1:3, 1:3), y(2:8:3, 1:6:2))
    call expect(all(y(2:8:3, 1:6:2) == 2*x(1:3, 1:3)), "a strided output")
    call expect(count(y == -1) == size(y) - 9, "nothing else is written")
    call twice%run(x(8:1:-1, :), y(:, 6:1:-1))
    call expect(all(y(:, 6:1:-1) == 2*x(8:1:-1, :)), "backwards")
    call twice%run([array(x(:, 2:3))], [array(y(:, 1:2))])
    call expect(all(y(:, 1:2) == 2*x(:, 2:3)), "sections by array()")
    call twice%run(x(3, :), y(3, :))
    call expect(all(y(3, :) == 2*x(3, :)), "a row of a matrix")
  end subroutine take_sections

  subroutine take_pointers()
    real(real32), allocatable :: x(:)
    real(real32), pointer :: y(:, :)
    real(real32), target :: memory(4, 4)

    x = [real(real32) :: 1, 2]
    memory = 0
    y => memory(1:4:3, 2:3)
    call twice%run(x, y(:, 1))
    call expect(all(y(:, 1) == 2*x) .and. all(y(:, 2) == 0), "an allocatable array and a pointer")
    call twice%run(x, x)
    call expect(all(x == [2, 4]), "in place")
  end subroutine take_pointers

end program layouts
