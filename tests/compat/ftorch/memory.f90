! SPDX-License-Identifier: MIT
!> Expressions, tensors made again and training steps, 100,000 times.
program memory
  use ftorch
  implicit none

  type(torch_tensor) :: a, b, c, total, made
  real, target :: x(3) = [1., 2., 3.], y(3) = 2, z(3), one(1)
  integer, parameter :: steps = 100000
  integer :: i, before, after

  call torch_tensor_from_array(a, x, torch_kCPU, requires_grad=.true.)
  call torch_tensor_from_array(b, y, torch_kCPU)
  call torch_tensor_from_array(c, z, torch_kCPU)
  do i = 1, steps
    if (i == steps / 10) before = resident()
    c = -((a + b) * a - 2 * b / a**2)
    call passed(a + b)
    call torch_tensor_from_array(total, one, torch_kCPU)
    call torch_tensor_sum(total, c)
    call torch_tensor_backward(total)
    call a%zero_grad()
    call torch_tensor_zeros(made, 1, [3_8], torch_kFloat32, torch_kCPU)
  end do
  after = resident()
  call expect(all(abs(z - (4 / x**2 - (x + 2) * x)) < 1e-5), "values")
  print "(a, i0)", "grown by kB: ", after - before
contains
  subroutine passed(tensor)
    type(torch_tensor), intent(in) :: tensor

    type(torch_tensor) :: local

    local = tensor * tensor
    local = tensor
    call expect(tensor%get_rank() == 1, "rank")
  end subroutine passed

  integer function resident()
    character(100) :: line
    integer :: unit

    open (newunit=unit, file="/proc/self/status", action="read")
    line = ""
    do while (line(:6) /= "VmRSS:")
      read (unit, "(a)") line
    end do
    close (unit)
    read (line(7:index(line, "kB") - 1), *) resident
  end function resident
end program memory
