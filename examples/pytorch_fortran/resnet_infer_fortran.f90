! SPDX-License-Identifier: MIT
!> Run a ResNet on a batch of images, by torchspan's own API.
program resnet_infer
  use, intrinsic :: iso_fortran_env, only: real32
  use torchspan, only: model_type
  implicit none

  type(model_type) :: resnet
  real(real32), allocatable :: images(:, :, :, :), scores(:, :)
  character(len=1024) :: path
  integer :: i

  call get_command_argument(1, path)
  if (path == "") error stop "resnet_infer_fortran TRACED_MODEL"

  ! (width, height, colour, image) is (image, colour, height, width) to the model.
  allocate (images(224, 224, 3, 10), scores(1000, 10))
  do i = 1, 10
    images(:, :, :, i) = 0.1*real(i)
  end do

  call resnet%load(trim(path), "cpu")
  call resnet%run(images, scores)

  print "(a, i0, a, i0)", "classes ", size(scores, 1), ", images ", size(scores, 2)
  print "(a, 5f8.3)", "first image:", scores(:5, 1)
  print "(a, 5f8.3)", "last image: ", scores(:5, 10)
end program resnet_infer
