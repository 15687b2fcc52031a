! SPDX-License-Identifier: MIT
!> Who this process is among those that its launcher started; MPI need not be initialised.
module torchspan_placement
  use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_null_char
  use torchspan_error, only: check, error_type
  implicit none
  private

  !> One process's placement.
  type, public :: placement_type
    !> From 0
    integer :: rank = 0
    !> How many processes there are
    integer :: size = 1
    !> Among those on this machine, from 0
    integer :: local_rank = 0
    !> How many are on this machine; -1 where the launcher does not say
    integer :: local_size = 1
    !> "torchrun", "openmpi", ...; "none" for a process started alone
    character(len=16) :: launcher = "none"
  contains
    !> `call where%find(error)`
    procedure :: find
  end type placement_type

  type, bind(c) :: c_placement
    integer(c_int32_t) :: rank = 0, size = 0, local_rank = 0, local_size = 0
    character(kind=c_char) :: launcher(16) = c_null_char
  end type c_placement

  interface
    function c_find(placement) result(status) bind(c, name="tspan_fortran_placement")
      import :: c_int32_t, c_placement
      implicit none
      type(c_placement), intent(inout) :: placement
      integer(c_int32_t) :: status
    end function c_find
  end interface

contains

  !> Read the launcher's variables.
  subroutine find(self, error)
    class(placement_type), intent(inout) :: self
    !> What went wrong; the placement is as it was then
    type(error_type), allocatable, intent(out), optional :: error

    type(c_placement) :: found
    integer(c_int32_t) :: status
    integer :: i

    status = c_find(found)
    if (status == 0) then
      self%rank = found%rank
      self%size = found%size
      self%local_rank = found%local_rank
      self%local_size = found%local_size
      self%launcher = ""
      do i = 1, size(found%launcher)
        if (found%launcher(i) == c_null_char) exit
        self%launcher(i:i) = found%launcher(i)
      end do
    end if
    call check(status, error)
  end subroutine find

end module torchspan_placement
