! SPDX-License-Identifier: MIT
!> Run SimpleNet on each of several devices of one kind, which is chosen at run time.
program multigpu_infer_fortran
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: torch_delete, torch_kCPU, torch_kCUDA, torch_kHIP, torch_kMPS, torch_kXPU, &
    torch_model, torch_model_forward, torch_model_load, torch_tensor, torch_tensor_from_array
  implicit none

  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  character(len=256) :: kind, path
  real(real32), target :: x(5), y(5)
  integer(c_int) :: device_type, device_index, last

  if (command_argument_count() /= 2) error stop "usage: multigpu_infer_fortran DEVICE_TYPE MODEL"
  call get_command_argument(1, kind)
  call get_command_argument(2, path)
  last = 1
  select case (kind)
  case ("cuda")
    device_type = torch_kCUDA
  case ("hip")
    device_type = torch_kHIP
  case ("xpu")
    device_type = torch_kXPU
  case ("mps")
    device_type = torch_kMPS
    last = 0
  case default
    error stop "DEVICE_TYPE is one of cuda, hip, xpu, mps"
  end select

  do device_index = 0, last
    x = [0.0, 1.0, 2.0, 3.0, 4.0] + device_index
    print '("input on device ", i0, ": [", 4(f5.1, ","), f5.1, "]")', device_index, x
    ! The input goes to the device; the result comes back into the array on the CPU.
    call torch_tensor_from_array(inputs(1), x, device_type, device_index=device_index)
    call torch_tensor_from_array(outputs(1), y, torch_kCPU)
    call torch_model_load(model, path, device_type, device_index=device_index)
    call torch_model_forward(model, inputs, outputs)
    print '("output on device ", i0, ": [", 4(f5.1, ","), f5.1, "]")', device_index, y
    call torch_delete(model)
    call torch_delete(inputs)
    call torch_delete(outputs)
  end do
end program multigpu_infer_fortran
