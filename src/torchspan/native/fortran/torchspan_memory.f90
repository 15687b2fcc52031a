! SPDX-License-Identifier: MIT
!> Arrays that are used in many calls, page-locked so that accelerators copy them without a detour.
module torchspan_memory
  use, intrinsic :: iso_c_binding, only: c_int32_t
  use torchspan_error, only: check, error_type
  implicit none
  private

  public :: register, unregister

  interface
    function c_register(x) result(status) bind(c, name="tspan_fortran_register")
      import :: c_int32_t
      implicit none
      type(*), dimension(..), intent(in), target :: x
      integer(c_int32_t) :: status
    end function c_register

    function c_unregister(x) result(status) bind(c, name="tspan_fortran_unregister")
      import :: c_int32_t
      implicit none
      type(*), dimension(..), intent(in), target :: x
      integer(c_int32_t) :: status
    end function c_unregister
  end interface

contains

  !> Page-lock an array; where no accelerator needs that, it does nothing.
  subroutine register(x, error)
    !> An array without gaps, which must be unregistered before it is deallocated
    type(*), dimension(..), intent(in), target :: x
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    call check(c_register(x), error)
  end subroutine register

  !> Let go of an array that was registered.
  subroutine unregister(x, error)
    !> The array
    type(*), dimension(..), intent(in), target :: x
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    call check(c_unregister(x), error)
  end subroutine unregister

end module torchspan_memory
