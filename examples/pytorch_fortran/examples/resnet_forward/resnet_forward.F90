! SPDX-License-Identifier: MIT
!> Run a ResNet on a batch of images.
program resnet_forward
  use, intrinsic :: iso_fortran_env, only: real32
  use torch_ftn, only: torch_module, torch_tensor, torch_tensor_wrap
  implicit none

  real(real32), allocatable :: images(:, :, :, :)
  real(real32), pointer :: scores(:, :)
  type(torch_module) :: resnet
  type(torch_tensor) :: output
  type(torch_tensor_wrap) :: inputs
  character(len=1024) :: path
  integer :: i

  call get_command_argument(1, path)
  if (path == "") error stop "resnet_forward TRACED_MODEL"

  ! (width, height, colour, image) is (image, colour, height, width) to the model.
  allocate (images(224, 224, 3, 10))
  do i = 1, 10
    images(:, :, :, i) = 0.1*real(i)
  end do

  call resnet%load(path)
  call inputs%create()
  call inputs%add_array(images)
  call resnet%forward(inputs, output)
  call output%to_array(scores)

  print "(a, i0, a, i0)", "classes ", size(scores, 1), ", images ", size(scores, 2)
  print "(a, 5f8.3)", "first image:", scores(:5, 1)
  print "(a, 5f8.3)", "last image: ", scores(:5, 10)
end program resnet_forward
