! SPDX-License-Identifier: MIT
!> Every kind of array goes to a model that doubles numbers and negates truths, and comes back.
program kinds
  use, intrinsic :: iso_c_binding, only: c_bool
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use expectation, only: argument, expect, expect_error
  use torchspan, only: error_argument, error_type, model_type
  implicit none

  type(model_type) :: twice

  call twice%load(argument(1), "cpu")
  call take_integers()
  call take_reals()
  call take_truths()
  call take_scalars()
  call refuse_others()

contains

  subroutine take_integers()
    integer(int8) :: i8(3) = [1_int8, -2_int8, 3_int8], j8(3)
    integer(int16) :: i16(3) = [1_int16, -2_int16, 300_int16], j16(3)
    integer(int32) :: i32(3) = [1, -2, 70000], j32(3)
    integer(int64) :: i64(3) = [1_int64, -2_int64, 5000000000_int64], j64(3)

    call twice%run(i8, j8)
    call expect(all(j8 == 2*i8), "int8")
    call twice%run(i16, j16)
    call expect(all(j16 == 2*i16), "int16")
    call twice%run(i32, j32)
    call expect(all(j32 == 2*i32), "int32")
    call twice%run(i64, j64)
    call expect(all(j64 == 2*i64), "int64")
  end subroutine take_integers

  subroutine take_reals()
    real(real32) :: r32(2) = [0.1_real32, -3.0_real32], s32(2)
    real(real64) :: r64(2) = [0.1_real64, -3.0_real64], s64(2)
    complex(real32) :: c32(2) = [(0.1_real32, 2.0_real32), (-1.0_real32, 0.5_real32)], d32(2)
    complex(real64) :: c64(2) = [(0.1_real64, 2.0_real64), (-1.0_real64, 0.5_real64)], d64(2)

    call twice%run(r32, s32)
    call expect(all(s32 == 2*r32), "real32")
    call twice%run(r64, s64)
    call expect(all(s64 == 2*r64), "real64")
    call twice%run(c32, d32)
    call expect(all(d32 == 2*c32), "complex32")
    call twice%run(c64, d64)
    call expect(all(d64 == 2*c64), "complex64")
  end subroutine take_reals

  subroutine take_truths()
    logical(c_bool) :: given(3), taken(3)

    given = [.true., .false., .true.]
    call twice%run(given, taken)
    call expect(all(logical(taken) .neqv. logical(given)), "c_bool")
  end subroutine take_truths

  subroutine take_scalars()
    integer(int8) :: i8
    integer(int64) :: i64
    real(real32) :: r32
    complex(real64) :: c64
    logical(c_bool) :: truth

    i8 = 3
    i64 = 4
    r32 = 0.5
    c64 = (1, -2)
    truth = .false.
    call twice%run(i8, i8)
    call twice%run(i64, i64)
    call twice%run(r32, r32)
    call twice%run(c64, c64)
    call twice%run(truth, truth)
    call expect(i8 == 6 .and. i64 == 8 .and. r32 == 1 .and. c64 == (2, -4), "scalars")
    call expect(logical(truth), "a scalar truth")
  end subroutine take_scalars

  !> Kinds that no tensor has are errors, and nothing is written.
  subroutine refuse_others()
    type(error_type), allocatable :: error
    logical :: truths(2)
    character(len=4) :: letters(2)
    real(real32) :: x(2), y(2)

    truths = .true.
    letters = "abcd"
    x = 1
    y = 7
    call twice%run(truths, y, error)
    call expect_error(error, error_argument, "logical(c_bool)")
    call twice%run(letters, y, error)
    call expect_error(error, error_argument, "input 1 has a kind of 4 bytes")
    call twice%run(x, truths, error)
    call expect_error(error, error_argument, "output 1 has a kind of 4 bytes")
    call expect(all(y == 7), "nothing was written")
  end subroutine refuse_others

end program kinds
