! SPDX-License-Identifier: MIT
!> A time loop that calls a model in every step: what is expensive is done once, before it.
program looping_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: torch_delete, torch_kCPU, torch_model, torch_model_forward, torch_model_load, &
    torch_tensor, torch_tensor_from_array
  implicit none

  integer, parameter :: steps = 1000
  real(real32), parameter :: time_step = 1e-3
  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  character(len=256) :: path
  real(real32), target :: state(5), tendency(5)
  integer :: step

  if (command_argument_count() /= 1) error stop "usage: looping_infer_fortran MODEL"
  call get_command_argument(1, path)

  ! The tensors are over the arrays, so the loop need not make them again.
  state = [1.0, 2.0, 3.0, 4.0, 5.0]
  call torch_model_load(model, path, torch_kCPU)
  call torch_tensor_from_array(inputs(1), state, torch_kCPU)
  call torch_tensor_from_array(outputs(1), tendency, torch_kCPU)
  do step = 1, steps
    call torch_model_forward(model, inputs, outputs)
    state = state + time_step*tendency
  end do
  print '("after ", i0, " steps:", 5f8.4)', steps, state

  call torch_delete(model)
  call torch_delete(inputs)
  call torch_delete(outputs)
end program looping_infer_fortran
