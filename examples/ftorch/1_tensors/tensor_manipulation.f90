! SPDX-License-Identifier: MIT
!> Make tensors, ask what they are, and calculate with them, in and out of Fortran's own arrays.
program tensor_manipulation
  use, intrinsic :: iso_c_binding, only: c_int64_t
  use, intrinsic :: iso_fortran_env, only: output_unit, real32
  use ftorch, only: assignment(=), operator(**), operator(*), operator(-), torch_delete, &
    torch_kCPU, torch_kFloat32, torch_tensor, torch_tensor_from_array, torch_tensor_mean, &
    torch_tensor_ones, torch_tensor_print, torch_tensor_sum, torch_tensor_zero
  implicit none

  real(real32), target :: matrix(2, 2), squares(2, 2), total(1), average(1)
  type(torch_tensor) :: a, transposed, ones, result, reduced(2)

  matrix = reshape([1.0, 2.0, 3.0, 4.0], shape(matrix))

  ! Over the same memory: as the array is, and with the second index running fastest.
  call torch_tensor_from_array(a, matrix, torch_kCPU)
  call torch_tensor_from_array(transposed, matrix, [2, 1], torch_kCPU)
  call describe("array", a)
  call describe("transposed", transposed)
  ! Memory of its own.
  call torch_tensor_ones(ones, 2, [2_c_int64_t, 2_c_int64_t], torch_kFloat32, torch_kCPU)
  call describe("ones", ones)
  flush (output_unit)
  call torch_tensor_print(ones)

  ! A result that lands in an array.
  call torch_tensor_from_array(result, squares, torch_kCPU)
  result = a*a - ones
  print '("a*a - 1 =", 4f6.1)', squares
  result = a**2
  print '("a**2    =", 4f6.1)', squares

  call torch_tensor_from_array(reduced(1), total, torch_kCPU)
  call torch_tensor_from_array(reduced(2), average, torch_kCPU)
  call torch_tensor_sum(reduced(1), a)
  call torch_tensor_mean(reduced(2), a)
  print '("sum", f6.1, ", mean", f6.1)', total, average

  ! What is written to a tensor over an array is written to the array.
  call torch_tensor_zero(a)
  print '("zeroed  =", 4f6.1)', matrix

  call torch_delete(a)
  call torch_delete(transposed)
  call torch_delete(ones)
  call torch_delete(result)
  call torch_delete(reduced)

contains

  subroutine describe(name, tensor)
    character(len=*), intent(in) :: name
    type(torch_tensor), intent(in) :: tensor

    print '(a, ": rank ", i0, ", shape", 2(1x, i0), ", strides", 2(1x, i0))', &
      name, tensor%get_rank(), tensor%get_shape(), tensor%get_stride()
  end subroutine describe

end program tensor_manipulation
