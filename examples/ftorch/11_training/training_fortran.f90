! SPDX-License-Identifier: MIT
!> Teach a network to double numbers, save it, and run what was saved.
program training_fortran
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use ftorch, only: torch_delete, torch_kCPU, torch_loss_mse, torch_model, torch_model_forward, &
    torch_model_load, torch_model_parameters, torch_model_save, torch_optim, torch_optim_Adam, &
    torch_tensor, torch_tensor_backward, torch_tensor_from_array
  implicit none

  integer, parameter :: steps = 100
  type(torch_model) :: model, trained
  type(torch_tensor) :: inputs(1), outputs(1), target, loss
  type(torch_tensor), allocatable :: parameters(:)
  type(torch_optim) :: optimizer
  character(len=256) :: path
  real(real32), target :: x(5, 5), y(5, 5), twice(5, 5), distance(1), row(1, 5), doubled(1, 5)
  integer :: step, i

  if (command_argument_count() /= 1) error stop "usage: training_fortran MODEL"
  call get_command_argument(1, path)
  call torch_model_load(model, path, torch_kCPU, requires_grad=.true., is_training=.true.)
  allocate (parameters(1))
  call torch_model_parameters(model, parameters)
  call torch_optim_Adam(optimizer, parameters, learning_rate=0.05_real64)

  x = reshape([(merge(1.0, 0.0, mod(i, 6) == 0), i=0, 24)], shape(x))
  twice = 2*x
  call torch_tensor_from_array(inputs(1), x, torch_kCPU)
  call torch_tensor_from_array(target, twice, torch_kCPU)
  call torch_tensor_from_array(outputs(1), y, torch_kCPU)
  call torch_tensor_from_array(loss, distance, torch_kCPU)
  do step = 0, steps
    call optimizer%zero_grad()
    call torch_model_forward(model, inputs, outputs, requires_grad=.true.)
    call torch_loss_mse(loss, outputs(1), target)
    if (mod(step, 20) == 0) print '("step ", i3, ": loss", f7.4)', step, distance
    call torch_tensor_backward(loss)
    call optimizer%step()
  end do
  call torch_model_save(model, "trained_model.pt")

  call torch_delete(inputs)
  call torch_delete(outputs)
  row(1, :) = [0.0, 1.0, 2.0, 3.0, 4.0]
  call torch_tensor_from_array(inputs(1), row, torch_kCPU)
  call torch_tensor_from_array(outputs(1), doubled, torch_kCPU)
  call torch_model_load(trained, "trained_model.pt", torch_kCPU)
  call torch_model_forward(trained, inputs, outputs)
  print '(5(f5.1, :, ","))', doubled
end program training_fortran
