! SPDX-License-Identifier: MIT
!> Places that compute.
module torchspan_device
  use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_null_char, c_size_t
  use torchspan_error, only: check, error_type
  implicit none
  private

  public :: devices_find

  !> One device.
  type, public :: device_type
    !> What users write: "cuda:0", "cpu:1"
    character(len=16) :: name = ""
    !> Where torch really computes: "cuda:0", "cpu"
    character(len=16) :: backing = ""
  end type device_type

  type, bind(c) :: c_device
    character(kind=c_char) :: name(16) = c_null_char, backing(16) = c_null_char
  end type c_device

  interface
    function c_find(spec, devices, capacity, count) result(status) &
      bind(c, name="tspan_fortran_devices")
      import :: c_char, c_device, c_int32_t, c_size_t
      implicit none
      character(kind=c_char), intent(in) :: spec(*)
      type(c_device), intent(inout) :: devices(*)
      integer(c_size_t), intent(in), value :: capacity
      integer(c_size_t), intent(inout) :: count
      integer(c_int32_t) :: status
    end function c_find
  end interface

contains

  !> Find devices by a text, such as "all", "cuda" or "cpu:0,cpu:1".
  subroutine devices_find(spec, devices, error)
    !> The text
    character(len=*), intent(in) :: spec
    !> The devices, in order; none if there is an error
    type(device_type), allocatable, intent(out) :: devices(:)
    !> What went wrong, for instance that a device is not there
    type(error_type), allocatable, intent(out), optional :: error

    type(c_device), allocatable :: found(:)
    integer(c_size_t) :: count
    integer(c_int32_t) :: status
    integer :: i

    count = 0
    allocate (found(0))
    do
      status = c_find(trim(spec)//c_null_char, found, size(found, kind=c_size_t), count)
      if (status /= 0 .or. count <= size(found)) exit
      deallocate (found)
      allocate (found(count))
    end do
    if (status /= 0) count = 0
    allocate (devices(count))
    do i = 1, size(devices)
      devices(i)%name = text(found(i)%name)
      devices(i)%backing = text(found(i)%backing)
    end do
    call check(status, error)
  end subroutine devices_find

  !> A text of C's, filled up with blanks.
  pure function text(letters) result(filled)
    character(kind=c_char), intent(in) :: letters(16)
    character(len=16) :: filled

    integer :: i

    filled = ""
    do i = 1, size(letters)
      if (letters(i) == c_null_char) exit
      filled(i:i) = letters(i)
    end do
  end function text

end module torchspan_device
