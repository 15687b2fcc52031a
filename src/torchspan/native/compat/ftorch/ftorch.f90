! SPDX-License-Identifier: MIT
!> Everything that programs written for FTorch use.
module ftorch
  use ftorch_devices
  use ftorch_loss
  use ftorch_model
  use ftorch_optim
  use ftorch_tensor
  use ftorch_types
  implicit none
  public
  private :: handle_of

  !> Delete a tensor, tensors, a model or an optimiser.
  interface torch_delete
    procedure :: torch_tensor_delete
    procedure :: torch_tensor_array_delete
    procedure :: torch_model_delete
    procedure :: torch_optim_delete
  end interface torch_delete

end module ftorch
