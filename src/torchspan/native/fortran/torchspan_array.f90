! SPDX-License-Identifier: MIT
!> Arrays of any kind and rank, taken down for a call with several of them.
module torchspan_array
  use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t, c_null_ptr, c_ptr
  implicit none
  private

  public :: array

  !> An array of the caller's: where it lies and how. The components are those of capture.h.
  type, bind(c), public :: array_type
    private
    integer(c_int64_t) :: mark = 0
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: element_size = 0
    integer(c_int32_t) :: type = 0
    integer(c_int32_t) :: rank = 0
    integer(c_int64_t) :: extent(15) = 0
    integer(c_int64_t) :: step(15) = 0
  end type array_type

  interface
    subroutine c_capture(from, to) bind(c, name="tspan_fortran_capture")
      import :: array_type
      implicit none
      type(*), dimension(..), intent(in), target :: from
      type(array_type), intent(inout) :: to
    end subroutine c_capture
  end interface

contains

  !> Take an array down, to go with others into one call: `call net%run([array(u), array(v)], y)`.
  function array(x) result(taken)
    !> A variable or a section of one, which goes on existing until the call is done
    type(*), dimension(..), intent(in), target :: x
    type(array_type) :: taken

    call c_capture(x, taken)
  end function array

end module torchspan_array
