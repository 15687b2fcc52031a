! SPDX-License-Identifier: MIT
program operators
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use ftorch, only: torch_delete, torch_kCPU, torch_kFloat64, torch_tensor, torch_tensor_backward, &
    torch_tensor_from_array, torch_tensor_get_gradient, torch_tensor_mean, torch_tensor_sum, &
    torch_tensor_zero_grad, assignment(=), operator(+), operator(-), operator(*), operator(/), &
    operator(**)
  implicit none

  type(torch_tensor) :: a, b, c, d, scalar, total, gradient, weights
  real(real64), target :: x(3), y(3), z(3), one(1), g(3), w(3)

  x = [1, 2, 3]
  y = [4, 5, 6]
  w = [1, 10, 100]
  call torch_tensor_from_array(a, x, torch_kCPU, requires_grad=.true.)
  call torch_tensor_from_array(b, y, torch_kCPU)
  call torch_tensor_from_array(c, z, torch_kCPU)
  call torch_tensor_from_array(gradient, g, torch_kCPU)
  call torch_tensor_from_array(scalar, one, torch_kCPU)
  call torch_tensor_from_array(total, one, torch_kCPU)
  call torch_tensor_from_array(weights, w, torch_kCPU)
  c = a + b
  call expect(all(z == x + y), "+")
  c = a - b
  call expect(all(z == x - y), "-")
  c = a * b
  call expect(all(z == x * y), "*")
  c = a / b
  call expect(all(abs(z - x / y) < 1e-15), "/")
  c = -a
  call expect(all(z == -x), "negative")
  c = a**2_int8
  call expect(all(z == x**2), "int8 power")
  c = a**2_int16
  c = a**2_int32
  c = a**3_int64
  call expect(all(z == x**3), "int64 power")
  c = a**0.5_real32
  call expect(all(abs(z - sqrt(x)) < 1e-15), "real32 power")
  c = a**0.5_real64
  call expect(all(abs(z - sqrt(x)) < 1e-15), "real64 power")
  one = 2
  c = scalar * a + b / scalar
  call expect(all(abs(z - (2 * x + y / 2)) < 1e-15), "one element")
  c = 2 * a - b / 2.0 + 1_int64 - (3_int8 - a) * 0.5_real64
  call expect(all(abs(z - (2 * x - y / 2 + 1 - (3 - x) / 2)) < 1e-14), "numbers")
  d = a + b
  call expect(d%get_dtype() == torch_kFloat64 .and. d%requires_grad(), "never made")
  c = d
  call expect(all(z == x + y), "never made values")
  call passed(a * b)

  call torch_tensor_sum(total, a * b)
  call expect(one(1) == sum(x * y), "sum")
  call torch_tensor_backward(total)
  call torch_tensor_get_gradient(gradient, a)
  call expect(all(g == y), "gradient of a sum")
  call torch_tensor_mean(total, a * b)
  call expect(abs(one(1) - sum(x * y) / 3) < 1e-14, "mean")
  call torch_tensor_zero_grad(a)
  call torch_tensor_backward(total, retain_graph=.true.)
  call torch_tensor_backward(total)
  call torch_tensor_get_gradient(gradient, a)
  call expect(all(abs(g - 2 * y / 3) < 1e-14), "retained graph")
  call a%zero_grad()
  c = a**2
  call torch_tensor_backward(c, weights)
  call torch_tensor_get_gradient(gradient, a)
  call expect(all(g == 2 * x * w), "weighed gradient")
  call a%zero_grad()
  c = a * a
  call torch_tensor_backward(c, weights, retain_graph=.true.)
  call torch_tensor_backward(c, weights, .false.)
  call torch_delete(gradient)
  call torch_tensor_get_gradient(gradient, a)
  c = gradient
  call expect(all(z == 4 * x * w), "a gradient never made")
  print "(a)", "all"
contains
  subroutine passed(product)
    type(torch_tensor), intent(in) :: product

    c = product + product * product
    call expect(all(z == x * y + (x * y)**2), "a temporary used three times")
    c = product
    call expect(all(z == x * y), "a temporary after a statement")
    call expect(all(product%get_shape() == [3]), "a temporary's shape")
  end subroutine passed
end program operators
