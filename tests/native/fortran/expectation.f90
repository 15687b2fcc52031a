! SPDX-License-Identifier: MIT
!> What the test programs share: a check that ends the program with the check's name.
module expectation
  use torchspan, only: error_type
  implicit none
  private

  public :: argument, expect, expect_error

contains

  subroutine expect(condition, name)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: name

    if (.not. condition) error stop "not so: "//name
    print '(a)', name
  end subroutine expect

  !> An error must be there, with this code and these words.
  subroutine expect_error(error, code, words)
    type(error_type), allocatable, intent(in) :: error
    integer, intent(in) :: code
    character(len=*), intent(in) :: words

    if (.not. allocated(error)) error stop "no error, but expected: "//words
    if (error%code /= code .or. index(error%message, words) == 0) &
      error stop "another error than '"//words//"': "//error%message
    print '(a)', error%message
  end subroutine expect_error

  function argument(number) result(text)
    integer, intent(in) :: number
    character(len=:), allocatable :: text

    integer :: length

    call get_command_argument(number, length=length)
    allocate (character(len=length) :: text)
    call get_command_argument(number, text)
  end function argument

end module expectation
