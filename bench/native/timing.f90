! SPDX-License-Identifier: MIT
!> What the benches' programs share: their arguments, and the median of their times.
module timing
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private

  public :: median, text, whole

contains

  function median(values) result(middle)
    real(real64), intent(in) :: values(:)
    real(real64) :: middle
    integer :: index

    do index = 1, size(values)
      middle = values(index)
      if (count(values < middle) <= size(values) / 2 .and. &
        count(values <= middle) > size(values) / 2) return
    end do
  end function median

  function text(number) result(value)
    integer, intent(in) :: number
    character(len=:), allocatable :: value
    integer :: length

    call get_command_argument(number, length=length)
    allocate (character(len=length) :: value)
    call get_command_argument(number, value)
  end function text

  function whole(number) result(value)
    integer, intent(in) :: number
    integer :: value
    character(len=:), allocatable :: given

    given = text(number)
    read (given, *) value
  end function whole

end module timing
