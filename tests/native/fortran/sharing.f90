! SPDX-License-Identifier: MIT
!> Several inputs and outputs, calls in a loop, requests, and variables that share a model.
program sharing
  use, intrinsic :: iso_fortran_env, only: real32
  use expectation, only: argument, expect, expect_error
  use torchspan, only: array, error_argument, error_type, model_type, request_type
  implicit none

  type(model_type) :: net
  real(real32), asynchronous :: a(3, 4), b(3, 4), plus(3, 4), minus(3, 4)
  integer :: i

  call net%load(argument(1), argument(2))
  a = reshape([(real(i, real32), i=1, 12)], [3, 4])
  b = 100
  call take_several()
  call loop()
  call submit()
  call share()
  call describe()

contains

  subroutine take_several()
    call net%run([array(a), array(b)], [array(plus), array(minus)])
    call expect(all(plus == a + b) .and. all(minus == a - b), "two inputs and two outputs")
  end subroutine take_several

  subroutine loop()
    logical :: right
    integer :: step

    right = .true.
    do step = 1, 10
      b = step
      call net%run([array(a), array(b)], [array(plus), array(minus)])
      right = right .and. all(plus == a + step) .and. all(minus == a - step)
    end do
    call expect(right, "ten calls")
  end subroutine loop

  subroutine submit()
    type(request_type) :: request, same
    type(error_type), allocatable :: error
    logical :: done

    call request%wait(error)
    call expect_error(error, error_argument, "never submitted")
    b = 7
    call net%submit([array(a), array(b)], [array(plus), array(minus)], request)
    same = request
    done = .false.
    do while (.not. done)
      call same%test(done)
    end do
    call same%wait()
    call expect(all(plus == a + 7) .and. all(minus == a - 7), "a request")
    call request%wait(error)
    call expect_error(error, error_argument, "waited for already")
    call request%test(done, error)
    call expect_error(error, error_argument, "waited for already")
    call leave_a_request()
    call expect(all(plus == a + 8), "a request that nobody waited for is done when it goes")
  end subroutine submit

  subroutine leave_a_request()
    type(request_type) :: request

    b = 8
    call net%submit([array(a), array(b)], [array(plus), array(minus)], request)
  end subroutine leave_a_request

  subroutine share()
    type(model_type) :: first, second, many(3)
    type(model_type), allocatable :: copy
    type(error_type), allocatable :: error

    call first%load(argument(1), "cpu")
    second = first
    second = second
    many = second
    call first%close()
    call first%close()
    call first%run([array(a), array(b)], [array(plus), array(minus)], error)
    call expect_error(error, error_argument, "not open")
    call second%run([array(a), array(b)], [array(plus), array(minus)])
    allocate (copy, source=second)
    deallocate (copy)
    call second%close()
    call many(3)%run([array(a), array(b)], [array(plus), array(minus)])
    allocate (copy, source=many(1))
    call many%close()
    call copy%run([array(a), array(b)], [array(plus), array(minus)], error)
    call expect_error(error, error_argument, "not open")
    call first%load(argument(1), "cpu")
    second = first
    call first%load(argument(1), "cpu")
    call second%run([array(a), array(b)], [array(plus), array(minus)])
    call expect(.true., "assigned models share one")
  end subroutine share

  subroutine describe()
    character(len=:), allocatable :: json

    call net%describe(json)
    call expect(json(1:1) == "{" .and. index(json, '"inputs"') > 0, "describe")
    print '(a)', "json "//json
  end subroutine describe

end program sharing
