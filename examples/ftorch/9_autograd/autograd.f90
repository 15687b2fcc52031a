! SPDX-License-Identifier: MIT
!> Forces from an energy: gradients of what is computed with operators on tensors.
program autograd
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: assignment(=), operator(**), operator(*), operator(/), operator(-), &
    torch_delete, torch_kCPU, torch_tensor, torch_tensor_backward, torch_tensor_from_array, &
    torch_tensor_get_gradient, torch_tensor_sum, torch_tensor_zero_grad
  implicit none

  real(real32), target :: position(3), rest(3), half(1), energies(3), slope(3), ones(3), total(1)
  type(torch_tensor) :: x, x0, factor, energy, gradient, weights, whole

  position = [1.0, 2.5, -1.0]
  rest = [0.0, 2.0, 1.0]
  half = 0.5
  call torch_tensor_from_array(x, position, torch_kCPU, requires_grad=.true.)
  call torch_tensor_from_array(x0, rest, torch_kCPU)
  call torch_tensor_from_array(factor, half, torch_kCPU)
  call torch_tensor_from_array(energy, energies, torch_kCPU)
  call torch_tensor_from_array(gradient, slope, torch_kCPU)

  ! Springs: half the square of how far each is from its rest.
  energy = factor*(x - x0)**2
  print '("energies   ", 3f8.3)', energies

  ! Each energy counts once: an external gradient of ones.
  ones = 1
  call torch_tensor_from_array(weights, ones, torch_kCPU)
  call torch_tensor_backward(energy, weights)
  call torch_tensor_get_gradient(gradient, x)
  print '("forces     ", 3f8.3)', -slope

  ! The gradient of one number needs no weights; gradients add up until they are zeroed.
  call torch_tensor_zero_grad(x)
  call torch_tensor_from_array(whole, total, torch_kCPU)
  energy = x**3/factor
  call torch_tensor_sum(whole, energy)
  call torch_tensor_backward(whole, retain_graph=.false.)
  call torch_tensor_get_gradient(gradient, x)
  print '("of 2 x**3  ", 3f8.3)', slope

  call torch_delete(x)
  call torch_delete(x0)
  call torch_delete(factor)
  call torch_delete(energy)
  call torch_delete(gradient)
  call torch_delete(weights)
  call torch_delete(whole)
end program autograd
