! SPDX-License-Identifier: MIT
!> Classify an image with ResNet-18.
program resnet_infer_fortran
  use, intrinsic :: iso_fortran_env, only: real32
  use ftorch, only: torch_delete, torch_kCPU, torch_model, torch_model_forward, torch_model_load, &
    torch_tensor, torch_tensor_from_array
  implicit none

  integer, parameter :: side = 224, classes = 1000
  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  character(len=256) :: path, image_path
  real(real32), target :: image(1, 3, side, side), scores(1, classes)
  real(real32) :: numbers(3*side*side), probabilities(classes)
  integer :: unit, rank, best

  if (command_argument_count() /= 2) error stop "usage: resnet_infer_fortran MODEL IMAGE"
  call get_command_argument(1, path)
  call get_command_argument(2, image_path)

  ! The file has Python's order, in which the last index varies fastest.
  open (newunit=unit, file=image_path, access="stream", status="old", action="read")
  read (unit) numbers
  close (unit)
  image = reshape(numbers, shape(image), order=[4, 3, 2, 1])
  call torch_tensor_from_array(inputs(1), image, torch_kCPU)
  call torch_tensor_from_array(outputs(1), scores, torch_kCPU)

  call torch_model_load(model, path, torch_kCPU)
  call torch_model_forward(model, inputs, outputs)

  probabilities = exp(scores(1, :) - maxval(scores))
  probabilities = probabilities/sum(probabilities)
  do rank = 1, 3
    best = maxloc(probabilities, dim=1)
    print '("class ", i3, ": ", f6.2, " %")', best - 1, 100*probabilities(best)
    probabilities(best) = -1
  end do

  call torch_delete(model)
  call torch_delete(inputs)
  call torch_delete(outputs)
end program resnet_infer_fortran
