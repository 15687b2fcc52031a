! SPDX-License-Identifier: MIT
!> Run PyTorch models on any number of devices, from Fortran: `use torchspan`.
!>
!> Every procedure has an optional `error` argument. Where it is absent, an error stops the program
!> with its message.
module torchspan
  use torchspan_error, only: error_type, error_any, error_argument, error_device, &
    error_placement, error_model_file, error_model, error_memory, error_rank, error_build, &
    error_checkpoint
  use torchspan_array, only: array, array_type
  use torchspan_memory, only: register, unregister
  use torchspan_placement, only: placement_type
  use torchspan_device, only: device_type, devices_find
  use torchspan_request, only: request_type
  use torchspan_model, only: model_type
  implicit none
  private

  public :: array, array_type
  public :: device_type, devices_find
  public :: error_type, error_any, error_argument, error_device, error_placement, &
    error_model_file, error_model, error_memory, error_rank, error_build, error_checkpoint
  public :: model_type
  public :: placement_type
  public :: register, unregister
  public :: request_type
end module torchspan
