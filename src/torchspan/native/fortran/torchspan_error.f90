! SPDX-License-Identifier: MIT
!> Errors: returned to a caller who asks for them, and else the end of the program.
module torchspan_error
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_int32_t, c_ptr, c_size_t
  implicit none
  private

  public :: check, copy_text

  !> Codes, the same as in C and Python.
  integer, parameter, public :: error_any = 1
  integer, parameter, public :: error_argument = 2
  integer, parameter, public :: error_device = 3
  integer, parameter, public :: error_placement = 4
  integer, parameter, public :: error_model_file = 5
  integer, parameter, public :: error_model = 6
  integer, parameter, public :: error_memory = 7
  integer, parameter, public :: error_rank = 8
  integer, parameter, public :: error_build = 9
  integer, parameter, public :: error_checkpoint = 10

  !> What went wrong.
  type, public :: error_type
    !> One of the codes above
    integer :: code = error_any
    !> What was given, what was expected and what to do
    character(len=:), allocatable :: message
  end type error_type

  interface
    function c_message() result(text) bind(c, name="tspan_fortran_message")
      import :: c_ptr
      implicit none
      type(c_ptr) :: text
    end function c_message

    pure function c_strlen(text) result(length) bind(c, name="strlen")
      import :: c_ptr, c_size_t
      implicit none
      type(c_ptr), intent(in), value :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface

contains

  !> Turn a status of the C side into an error, or stop.
  subroutine check(status, error)
    !> What the C side returned
    integer(c_int32_t), intent(in) :: status
    !> The error; not allocated where there is none
    type(error_type), allocatable, intent(out), optional :: error

    character(len=:), allocatable :: message

    if (status == 0) return
    message = copy_text(c_message())
    if (.not. present(error)) error stop "torchspan: "//message
    allocate (error)
    error%code = int(status)
    error%message = message
  end subroutine check

  !> Copy a text of C's.
  function copy_text(text) result(copy)
    !> Where the text begins; it ends with a null
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: copy

    character(kind=c_char), pointer :: letters(:)
    integer :: i

    call c_f_pointer(text, letters, [c_strlen(text)])
    allocate (character(len=size(letters)) :: copy)
    do i = 1, size(letters)
      copy(i:i) = letters(i)
    end do
  end function copy_text

end module torchspan_error
