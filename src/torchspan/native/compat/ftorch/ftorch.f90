! SPDX-License-Identifier: MIT
!> Everything that programs written for FTorch use.
module ftorch
  use ftorch_devices
  use ftorch_types
  implicit none
  public

end module ftorch
