! SPDX-License-Identifier: MIT
!> Handles: assigned ones share what they stand for, and the last one to go frees it.
module torchspan_handle
  use, intrinsic :: iso_c_binding, only: c_int64_t, c_intptr_t, c_null_ptr, c_ptr
  implicit none
  private

  !> Where a thing lies, as the C side knows it; handle.h says why it has a generation.
  type, bind(c), public :: place_type
    type(c_ptr) :: slot = c_null_ptr
    integer(c_int64_t) :: generation = 0
  end type place_type

  !> One owner's share of a thing.
  type, public :: handle_type
    private
    type(place_type), public :: place
    !> Where this variable lay when it became an owner: copies that the compiler makes bit by bit
    !> own nothing, and must not give back a share
    integer(c_intptr_t) :: owner = 0
  contains
    procedure :: own
    procedure :: release
    procedure, private :: assign
    generic :: assignment(=) => assign
    final :: finalise
  end type handle_type

  interface
    subroutine c_share(place) bind(c, name="tspan_fortran_handle_share")
      import :: place_type
      implicit none
      type(place_type), intent(in) :: place
    end subroutine c_share

    subroutine c_release(place) bind(c, name="tspan_fortran_handle_release")
      import :: place_type
      implicit none
      type(place_type), intent(inout) :: place
    end subroutine c_release

    function c_address(place) result(number) bind(c, name="tspan_fortran_handle_address")
      import :: c_intptr_t, place_type
      implicit none
      type(place_type), intent(in) :: place
      integer(c_intptr_t) :: number
    end function c_address
  end interface

contains

  !> Become the owner of a new thing; what was owned before is released.
  subroutine own(self, place)
    class(handle_type), intent(inout) :: self
    !> Where the new thing lies
    type(place_type), intent(in) :: place

    call self%release()
    self%place = place
    self%owner = c_address(self%place)
  end subroutine own

  !> Give one's share back.
  impure elemental subroutine release(self)
    class(handle_type), intent(inout) :: self

    if (self%owner == c_address(self%place)) call c_release(self%place)
    self%place = place_type()
    self%owner = 0
  end subroutine release

  !> Share what another owns.
  impure elemental subroutine assign(self, other)
    class(handle_type), intent(inout) :: self
    !> The other
    class(handle_type), intent(in) :: other

    type(place_type) :: place

    place = other%place
    call c_share(place)
    call self%own(place)
  end subroutine assign

  impure elemental subroutine finalise(self)
    type(handle_type), intent(inout) :: self

    call self%release()
  end subroutine finalise

end module torchspan_handle
