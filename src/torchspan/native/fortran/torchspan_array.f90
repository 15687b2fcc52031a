! SPDX-License-Identifier: MIT
!> Arrays of any kind and rank, taken down for a call with several of them.
module torchspan_array
  use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_null_char, &
    c_null_ptr, c_ptr
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
    character(kind=c_char) :: device(16) = c_null_char
  end type array_type

  interface
    subroutine c_capture(from, to) bind(c, name="tspan_fortran_capture")
      import :: array_type
      implicit none
      type(*), dimension(..), intent(in), target :: from
      type(array_type), intent(inout) :: to
    end subroutine c_capture

    subroutine c_place(to, device) bind(c, name="tspan_fortran_place")
      import :: array_type, c_char
      implicit none
      type(array_type), intent(inout) :: to
      character(kind=c_char), intent(in) :: device(*)
    end subroutine c_place
  end interface

contains

  !> Take an array down, to go with others into one call: `call net%run([array(u), array(v)], y)`.
  function array(x, device) result(taken)
    !> A variable or a section of one, which goes on existing until the call is done
    type(*), dimension(..), intent(in), target :: x
    !> Whose memory it is in, such as "cuda:0"; if absent, its address tells
    character(len=*), intent(in), optional :: device
    type(array_type) :: taken

    call c_capture(x, taken)
    if (present(device)) call c_place(taken, trim(device)//c_null_char)
  end function array

end module torchspan_array
