! SPDX-License-Identifier: MIT
!> Batches under way: the program computes on while devices work.
module torchspan_request
  use, intrinsic :: iso_c_binding, only: c_int32_t
  use torchspan_error, only: check, error_type
  use torchspan_handle, only: handle_type, place_type
  implicit none
  private

  !> A batch that was submitted. Assigned requests are the same one: it is waited for once. One that
  !> nobody waited for is waited for when its last variable goes.
  type, public :: request_type
    private
    type(handle_type), public :: handle
  contains
    !> `call request%wait(error)`
    procedure :: wait
    !> `call request%test(done, error)`
    procedure :: test
    procedure, private :: assign
    generic :: assignment(=) => assign
  end type request_type

  interface
    function c_wait(place) result(status) bind(c, name="tspan_fortran_wait")
      import :: c_int32_t, place_type
      implicit none
      type(place_type), intent(inout) :: place
      integer(c_int32_t) :: status
    end function c_wait

    function c_test(place, done) result(status) bind(c, name="tspan_fortran_test")
      import :: c_int32_t, place_type
      implicit none
      type(place_type), intent(in) :: place
      integer(c_int32_t), intent(inout) :: done
      integer(c_int32_t) :: status
    end function c_test
  end interface

contains

  !> Wait until the batch is done and its outputs are written.
  subroutine wait(self, error)
    class(request_type), intent(inout) :: self
    !> What went wrong, in the batch too
    type(error_type), allocatable, intent(out), optional :: error

    integer(c_int32_t) :: status

    status = c_wait(self%handle%place)
    call check(status, error)
  end subroutine wait

  !> Ask whether the batch is done; it is still to be waited for.
  subroutine test(self, done, error)
    class(request_type), intent(in) :: self
    !> Whether it is done
    logical, intent(out) :: done
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    integer(c_int32_t) :: answer

    answer = 0
    call check(c_test(self%handle%place, answer), error)
    done = answer /= 0
  end subroutine test

  impure elemental subroutine assign(self, other)
    class(request_type), intent(inout) :: self
    class(request_type), intent(in) :: other

    self%handle = other%handle
  end subroutine assign

end module torchspan_request
