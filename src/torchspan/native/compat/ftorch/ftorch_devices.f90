! SPDX-License-Identifier: MIT
!> Kinds of device.
module ftorch_devices
  implicit none
  private

  enum, bind(c)
    enumerator :: torch_kCPU = 0
    enumerator :: torch_kCUDA = 1
    enumerator :: torch_kHIP = 2
    enumerator :: torch_kXPU = 12
    enumerator :: torch_kMPS = 13
  end enum

  public :: torch_kCPU, torch_kCUDA, torch_kHIP, torch_kXPU, torch_kMPS

end module ftorch_devices
