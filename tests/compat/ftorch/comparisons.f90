! SPDX-License-Identifier: MIT
program comparisons
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use ftorch_test_utils, only: allclose, assert_allclose, assert_isclose, isclose, test_print
  implicit none

  real(real32) :: x(2), y(2, 2), z(2, 2, 2)
  real(real64) :: u(2), v(2, 2), w(2, 2, 2)
  logical :: pass

  x = 1
  y = 1
  z = 1
  u = 1
  v = 1
  w = 1
  pass = allclose(x, x, "one", 1e-5, .true.)
  call expect(pass, "one")
  call expect(allclose(y, y, "two", print_result=.false.), "two")
  call expect(allclose(z, z, "three", print_result=.false.), "three")
  call expect(.not. allclose(u, 1.1_real64 * u, "far", print_result=.false.), "far")
  call expect(allclose(v, 1.1_real64 * v, "loose", 0.2_real64, .false.), "loose")
  call expect(assert_allclose(w, w, test_name="again", print_result=.false.), "again")
  call expect(.not. allclose(x, x(:1), "shapes", print_result=.false.), "shapes")
  call expect(isclose(1.0, 1.000001, "scalar", print_result=.false.), "scalar")
  call expect(.not. assert_isclose(1.0_real64, 1.1_real64, "apart", print_result=.false.), "apart")
  pass = isclose(1.0, 2.0, "said")
  call test_print("name", "message", .true.)
contains
end program comparisons
