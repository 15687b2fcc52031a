! SPDX-License-Identifier: MIT
program models
  use, intrinsic :: iso_c_binding, only: c_intptr_t
  use ftorch
  use ftorch_model, only: torch_model_again => torch_model
  implicit none

  type(torch_model) :: pair, line, saved, script
  type(torch_model_again) :: empty
  type(torch_tensor) :: inputs(2), outputs(2), parameters(2), fresh(1)
  real, target :: x(2, 3), y(2, 3), plus(2, 3), times(2, 3)
  character(500) :: folder

  call get_command_argument(1, folder)
  x = reshape([1, 2, 3, 4, 5, 6], [2, 3])
  y = 3
  call expect(transfer(empty%p, 0_c_intptr_t) == 0, "null by default")
  call torch_tensor_from_array(inputs(1), x, torch_kCPU)
  call torch_tensor_from_array(inputs(2), y, torch_kCPU)
  call torch_tensor_from_array(outputs(1), plus, torch_kCPU)
  call torch_tensor_from_array(outputs(2), times, torch_kCPU)
  call torch_model_load(pair, trim(folder)//"/pair.pt", torch_kCPU)
  call torch_model_forward(pair, inputs, outputs)
  call expect(all(plus == x + y) .and. all(times == x * y), "two inputs and outputs")
  plus = 0
  call torch_model_forward(pair, inputs, outputs(1:1), requires_grad=.false.)
  call expect(all(plus == x + y), "the first output alone")

  call torch_model_load(line, trim(folder)//"/line.pt", torch_kCPU, -1, requires_grad=.true., &
                        is_training=.true.)
  call expect(line%is_training() .and. .not. torch_model_is_training(pair), "training")
  call torch_model_parameters(line, parameters)
  call expect(parameters(1)%requires_grad(), "parameters")
  call line%print_parameters()
  call torch_model_print_parameters(line)
  call torch_model_forward(line, inputs(1:1), fresh, requires_grad=.true.)
  call expect(fresh(1)%requires_grad() .and. all(fresh(1)%get_shape() == [2, 3]), "never made")
  call torch_tensor_from_array(outputs(1), plus, torch_kCPU, requires_grad=.true.)
  plus = 7
  call torch_model_forward(line, inputs(1:1), outputs(1:1), requires_grad=.true.)
  call expect(all(plus == 0) .and. outputs(1)%requires_grad(), "with a graph, in the array")
  call torch_model_save(line, "saved.pt")
  call torch_model_load(saved, "saved.pt", torch_kCPU)
  call torch_model_forward(saved, inputs(1:1), outputs(2:2))
  call expect(all(times == 0), "saved")
  call torch_model_load(script, trim(folder)//"/twice.py", torch_kCPU)
  call torch_model_forward(script, inputs(1:1), outputs(2:2))
  call expect(all(times == 2 * x), "a script")
  call torch_delete(script)
  call torch_delete(script)
  call torch_delete(inputs)
  call torch_delete(pair)
  call torch_model_delete(line)
  print "(a)", "all"
contains
end program models
