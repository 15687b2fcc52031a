! SPDX-License-Identifier: MIT
!> Print this process's placement and the devices of a text.
program placement
  use torchspan, only: device_type, devices_find, error_type, placement_type
  use expectation, only: argument
  implicit none

  type(placement_type) :: where
  type(device_type), allocatable :: devices(:)
  type(error_type), allocatable :: error
  integer :: i

  call where%find(error)
  if (allocated(error)) error stop "there is an error"
  print '("rank ", i0, " of ", i0, ", ", i0, " of ", i0, " here, by ", a)', &
    where%rank, where%size, where%local_rank, where%local_size, trim(where%launcher)
  call devices_find(argument(1), devices)
  do i = 1, size(devices)
    print '(a, " on ", a)', trim(devices(i)%name), trim(devices(i)%backing)
  end do
end program placement
