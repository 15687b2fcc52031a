! SPDX-License-Identifier: MIT
program tensors
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_intptr_t, c_loc
  use, intrinsic :: iso_fortran_env, only: int32, real32, real64
  use ftorch_devices, only: torch_kCPU, torch_kCUDA, torch_kHIP, torch_kMPS, torch_kXPU
  use ftorch_tensor
  use ftorch_types
  implicit none

  type(torch_tensor) :: a, b, several(2)
  real(real32), target :: x(2, 3) = reshape([1., 2., 3., 4., 5., 6.], [2, 3]), y(2, 2)
  real(real32), pointer :: part(:, :)
  real(real64), target :: wide(2, 3)
  integer(c_int) :: numbers(5)
  integer :: i

  numbers = [torch_kCPU, torch_kCUDA, torch_kHIP, torch_kXPU, torch_kMPS]
  call expect(torch_kCPU == 0, "CPU")
  do i = 1, 5
    call expect(count(numbers == numbers(i)) == 1, "distinct")
  end do
  call expect(ftorch_int == int32, "ftorch_int")
  call expect(all([torch_kUInt8, torch_kInt8, torch_kInt16, torch_kInt32, torch_kInt64, &
                   torch_kFloat16, torch_kFloat32, torch_kFloat64] == [(i, i = 0, 7)]), "dtypes")
  call expect(all([torch_kNone, torch_kMean, torch_kSum] == [0, 1, 2]), "reductions")
  call expect(transfer(a%p, 0_c_intptr_t) == 0, "null by default")

  call torch_tensor_zeros(a, 2_c_int, [2_c_int64_t, 3_c_int64_t], torch_kFloat32, torch_kCPU)
  call expect(transfer(a%p, 0_c_intptr_t) /= 0, "made")
  call torch_tensor_from_array(b, x, torch_kCPU)
  b = a
  call expect(all(x == 0), "zeros")
  call torch_tensor_ones(a, 2, [2_c_int64_t, 3_c_int64_t], torch_kFloat32, torch_kCPU, -1, .true.)
  call expect(a%requires_grad() .and. torch_tensor_requires_grad(a), "requires_grad")
  b = a
  call expect(all(x == 1), "ones")
  call torch_tensor_zero(b)
  call expect(all(x == 0), "zero")
  x = 2
  call b%zero()
  call expect(all(x == 0), "bound zero")
  do i = torch_kUInt8, torch_kFloat64
    call torch_tensor_empty(a, 1, [4_c_int64_t], i, torch_kCPU)
    call expect(torch_tensor_get_dtype(a) == i .and. a%get_rank() == 1, "empty of each dtype")
  end do
  call expect(torch_tensor_get_device_index(a) == -1 .and. a%get_device_index() == -1, "index")
  call expect(torch_tensor_get_device_type(a) == torch_kCPU, "device")

  x = reshape([1., 2., 3., 4., 5., 6.], [2, 3])
  call torch_tensor_from_blob(a, c_loc(x), 2, [2_c_int64_t, 3_c_int64_t], [2, 1], &
                              torch_kFloat32, torch_kCPU)
  call expect(all(torch_tensor_get_stride(a) == [3, 1]), "blob strides")
  call expect(all(torch_tensor_get_shape(a) == [2, 3]), "blob shape")
  part => x(:, 1:3:2)
  call torch_tensor_from_array(a, part, torch_kCPU)
  call torch_tensor_from_array(b, y, torch_kCPU)
  b = a
  call expect(all(y == x(:, 1:3:2)), "a section")
  call torch_tensor_from_array(a, x, torch_kCPU)
  call torch_tensor_from_array(b, wide, torch_kCPU)
  call torch_tensor_to(a, b)
  call expect(all(wide == x), "to another dtype")
  call torch_tensor_to(a, b, non_blocking=.true.)
  call torch_tensor_delete(b)
  call expect(transfer(b%p, 0_c_intptr_t) == 0, "deleted")
  b = a
  x(1, 1) = 9
  call b%print()
  call torch_tensor_print(a)
  several(1) = a
  several(2) = a
  several(1) = several(2)
  call torch_tensor_array_delete(several)
  call torch_tensor_delete(several(1))
  print "(a)", "all"
contains
end program tensors
