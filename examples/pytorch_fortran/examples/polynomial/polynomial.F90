! SPDX-License-Identifier: MIT
!> Train a small network on a cubic polynomial from inside Fortran, and save it.
program polynomial
  use, intrinsic :: iso_fortran_env, only: real32
#ifdef _OPENACC
  use openacc, only: acc_device_host, acc_get_device_type
#endif
  use torch_ftn, only: module_use_device, torch_module, torch_tensor, torch_tensor_wrap
  implicit none

  integer, parameter :: batch = 1024
  real(real32) :: x(1, batch), y(1, batch), loss
  real(real32), pointer :: learnt(:, :)
  type(torch_module) :: net
  type(torch_tensor) :: target, output
  type(torch_tensor_wrap) :: inputs
  character(len=1024) :: untrained, trained
  integer :: flags, i, step

  call get_command_argument(1, untrained)
  call get_command_argument(2, trained)
  if (trained == "") error stop "polynomial TRACED_MODEL NEW_MODEL"

  flags = 0
#ifdef _OPENACC
  if (acc_get_device_type() /= acc_device_host) flags = module_use_device
#endif

  !$acc data create(x, y)
  !$acc parallel loop
  do i = 1, batch
    x(1, i) = 2.0*real(i - 1)/real(batch - 1) - 1.0
    y(1, i) = x(1, i)**3 - 0.5*x(1, i)**2 - 0.5*x(1, i) + 0.25
  end do

  call net%load(untrained, flags)
  call net%create_optimizer_sgd(0.1)
  call inputs%create()
  !$acc host_data use_device(x, y)
  call inputs%add_array(x)
  call target%from_array(y)
  !$acc end host_data

  step = 0; loss = huge(loss)
  do while (loss >= 1e-4)
    step = step + 1
    call net%train(inputs, target, loss)
    if (mod(step, 500) == 0) print "(a, i0, a, es8.1)", "step ", step, ", loss ", loss
  end do

  call net%forward(inputs, output, flags)
  call output%to_array(learnt)
  !$acc update host(x, y, learnt)
  do i = 1, batch, (batch - 1)/3
    print "(3(a, f5.2))", "x ", x(1, i), "  polynomial ", y(1, i), "  network ", learnt(1, i)
  end do
  !$acc end data
  call net%save(trained)
  print "(a)", "the polynomial is learnt and saved"
end program polynomial
