! SPDX-License-Identifier: MIT
!> Losses, which are written into a tensor that was made before.
module ftorch_loss
  use, intrinsic :: iso_c_binding, only: c_int
  use ftorch_library, only: c_loss
  use ftorch_tensor, only: handle_of, torch_tensor
  use ftorch_types, only: torch_kMean
  implicit none
  private

  public :: torch_loss_mse, torch_loss_cross_entropy

contains

  !> The squared difference.
  subroutine torch_loss_mse(loss, input, target, reduction_type)
    type(torch_tensor), intent(inout) :: loss
    type(torch_tensor), intent(in) :: input
    type(torch_tensor), intent(in) :: target
    !> torch_kMean, torch_kSum or torch_kNone; torch_kMean by default
    integer(c_int), intent(in), optional :: reduction_type

    call write_loss(0, loss, input, target, reduction_type)
  end subroutine torch_loss_mse

  !> The cross entropy of scores and classes.
  subroutine torch_loss_cross_entropy(loss, input, target, reduction_type)
    type(torch_tensor), intent(inout) :: loss
    type(torch_tensor), intent(in) :: input
    !> Classes from 0, or probabilities
    type(torch_tensor), intent(in) :: target
    !> torch_kMean, torch_kSum or torch_kNone; torch_kMean by default
    integer(c_int), intent(in), optional :: reduction_type

    call write_loss(1, loss, input, target, reduction_type)
  end subroutine torch_loss_cross_entropy

  subroutine write_loss(entropy, loss, input, target, reduction_type)
    integer(c_int), intent(in) :: entropy
    type(torch_tensor), intent(inout) :: loss
    type(torch_tensor), intent(in) :: input, target
    integer(c_int), intent(in), optional :: reduction_type

    integer(c_int) :: reduction

    reduction = torch_kMean
    if (present(reduction_type)) reduction = reduction_type
    loss%p = handle_of(loss)
    call c_loss(entropy, handle_of(input), handle_of(target), reduction, loss%p)
  end subroutine write_loss

end module ftorch_loss
