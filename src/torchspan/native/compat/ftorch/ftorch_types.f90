! SPDX-License-Identifier: MIT
!> Kinds of numbers, and what becomes of the losses of elements.
module ftorch_types
  use, intrinsic :: iso_fortran_env, only: int32
  implicit none
  private

  !> Of layouts
  integer, parameter, public :: ftorch_int = int32

  enum, bind(c)
    enumerator :: torch_kUInt8 = 0
    enumerator :: torch_kInt8 = 1
    enumerator :: torch_kInt16 = 2
    enumerator :: torch_kInt32 = 3
    enumerator :: torch_kInt64 = 4
    enumerator :: torch_kFloat16 = 5
    enumerator :: torch_kFloat32 = 6
    enumerator :: torch_kFloat64 = 7
  end enum

  enum, bind(c)
    enumerator :: torch_kNone = 0
    enumerator :: torch_kMean = 1
    enumerator :: torch_kSum = 2
  end enum

  public :: torch_kUInt8, torch_kInt8, torch_kInt16, torch_kInt32, torch_kInt64
  public :: torch_kFloat16, torch_kFloat32, torch_kFloat64
  public :: torch_kNone, torch_kMean, torch_kSum

end module ftorch_types
