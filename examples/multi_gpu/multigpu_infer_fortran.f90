! SPDX-License-Identifier: MIT
!> Run the saved SimpleNet on two devices of one kind at the same time, from Fortran.
program multigpu_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use torchspan, only: model_type, request_type
  implicit none

  type(model_type) :: nets(0:1)
  type(request_type) :: requests(0:1)
  character(len=256) :: kind, path
  character(len=32) :: device
  real(real32), asynchronous :: x(5, 1, 0:1), y(5, 1, 0:1)
  integer :: i, last

  if (command_argument_count() /= 2) error stop "usage: multigpu_infer_fortran DEVICE_TYPE MODEL"
  call get_command_argument(1, kind)
  call get_command_argument(2, path)
  last = merge(0, 1, kind == "mps") ! no machine has more than one MPS device

  do i = 0, last
    x(:, 1, i) = [0.0, 1.0, 2.0, 3.0, 4.0] + i
    print '("input on device ", i0, ": [", 4(f5.1, ","), f5.1, "]")', i, x(:, :, i)
    write (device, '(a, ":", i0)') trim(kind), i
    call nets(i)%load(path, device)
    call nets(i)%submit(x(:, :, i), y(:, :, i), requests(i))
  end do
  do i = 0, last
    call requests(i)%wait()
    print '("output on device ", i0, ": [", 4(f5.1, ","), f5.1, "]")', i, y(:, :, i)
  end do
end program multigpu_infer_fortran
