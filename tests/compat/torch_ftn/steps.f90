! SPDX-License-Identifier: MIT
!> Tensors made again in every step: the bytes that 100,000 steps take for good.
program steps
  use, intrinsic :: iso_fortran_env, only: int64, real32
  use torch_ftn
  implicit none

  type(torch_module) :: net
  character(len=512) :: path
  integer(int64) :: before
  integer :: i

  call get_command_argument(1, path)
  call net%load(path)
  do i = 1, 5000
    call step()
  end do
  before = resident()
  do i = 1, 100000
    call step()
  end do
  print "(i0)", resident() - before

contains

  subroutine step()
    type(torch_tensor_wrap) :: inputs
    type(torch_tensor) :: input, output
    real(real32) :: x(3, 4)
    real(real32), pointer :: y(:, :)

    x = 1
    call input%from_array(x)
    call inputs%create()
    call inputs%add_tensor(input)
    call net%forward(inputs, output)
    call output%to_array(y)
    if (any(y /= 2)) error stop "a wrong result"
  end subroutine step

  function resident() result(bytes)
    integer(int64) :: bytes, pages(2)
    integer :: unit

    open (newunit=unit, file="/proc/self/statm", action="read")
    read (unit, *) pages
    close (unit)
    bytes = 4096*pages(2)
  end function resident

end program steps
