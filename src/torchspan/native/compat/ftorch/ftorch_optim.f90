! SPDX-License-Identifier: MIT
!> Optimisers.
module ftorch_optim
  use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: real64
  use ftorch_library, only: flag
  use ftorch_tensor, only: handle_of, torch_tensor
  implicit none
  private

  public :: torch_optim_SGD, torch_optim_Adam, torch_optim_AdamW
  public :: torch_optim_step, torch_optim_zero_grad, torch_optim_delete

  !> What moves parameters by their gradients.
  type, public :: torch_optim
    type(c_ptr) :: p = c_null_ptr
  contains
    procedure :: step => torch_optim_step
    procedure :: zero_grad => torch_optim_zero_grad
    final :: finalise
  end type torch_optim

  interface
    subroutine c_sgd(place, parameters, count, learning_rate, momentum, weight_decay, dampening, &
                     nesterov) bind(c, name="tspan_ftorch_sgd")
      import :: c_double, c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      type(c_ptr), intent(in) :: parameters(*)
      integer(c_int32_t), intent(in), value :: count, nesterov
      real(c_double), intent(in), value :: learning_rate, momentum, weight_decay, dampening
    end subroutine c_sgd

    subroutine c_adam(place, decoupled, parameters, count, learning_rate, beta_1, beta_2, eps, &
                      weight_decay, amsgrad) bind(c, name="tspan_ftorch_adam")
      import :: c_double, c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      type(c_ptr), intent(in) :: parameters(*)
      integer(c_int32_t), intent(in), value :: decoupled, count, amsgrad
      real(c_double), intent(in), value :: learning_rate, beta_1, beta_2, eps, weight_decay
    end subroutine c_adam

    subroutine c_step(optimizer) bind(c, name="tspan_ftorch_optim_step")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(in), value :: optimizer
    end subroutine c_step

    subroutine c_zero_gradients(optimizer) bind(c, name="tspan_ftorch_optim_zero")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(in), value :: optimizer
    end subroutine c_zero_gradients

    subroutine c_delete_optimizer(place) bind(c, name="tspan_ftorch_optim_delete")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
    end subroutine c_delete_optimizer

    subroutine c_forget_optimizer(place) bind(c, name="tspan_ftorch_optim_forget")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
    end subroutine c_forget_optimizer
  end interface

contains

  !> Stochastic gradient descent.
  subroutine torch_optim_SGD(optim, parameters, learning_rate, momentum, weight_decay, dampening, &
                             nesterov)
    type(torch_optim), intent(inout) :: optim
    type(torch_tensor), intent(in) :: parameters(:)
    !> 1e-3 by default; the other numbers are 0
    real(real64), intent(in), optional :: learning_rate, momentum, weight_decay, dampening
    logical, intent(in), optional :: nesterov

    call c_sgd(optim%p, handles_of(parameters), size(parameters), &
               given(learning_rate, 1e-3_real64), given(momentum, 0.0_real64), &
               given(weight_decay, 0.0_real64), given(dampening, 0.0_real64), flag(nesterov))
  end subroutine torch_optim_SGD

  !> Adam.
  subroutine torch_optim_Adam(optim, parameters, learning_rate, beta_1, beta_2, eps, &
                              weight_decay, amsgrad)
    type(torch_optim), intent(inout) :: optim
    type(torch_tensor), intent(in) :: parameters(:)
    !> 1e-3, 0.9, 0.999, 1e-8 and 0 by default
    real(real64), intent(in), optional :: learning_rate, beta_1, beta_2, eps, weight_decay
    logical, intent(in), optional :: amsgrad

    call c_adam(optim%p, 0, handles_of(parameters), size(parameters), &
                given(learning_rate, 1e-3_real64), given(beta_1, 0.9_real64), &
                given(beta_2, 0.999_real64), given(eps, 1e-8_real64), &
                given(weight_decay, 0.0_real64), flag(amsgrad))
  end subroutine torch_optim_Adam

  !> Adam with weight decay apart from the gradients.
  subroutine torch_optim_AdamW(optim, parameters, learning_rate, beta_1, beta_2, eps, &
                               weight_decay, amsgrad)
    type(torch_optim), intent(inout) :: optim
    type(torch_tensor), intent(in) :: parameters(:)
    !> 1e-3, 0.9, 0.999, 1e-8 and 0.01 by default
    real(real64), intent(in), optional :: learning_rate, beta_1, beta_2, eps, weight_decay
    logical, intent(in), optional :: amsgrad

    call c_adam(optim%p, 1, handles_of(parameters), size(parameters), &
                given(learning_rate, 1e-3_real64), given(beta_1, 0.9_real64), &
                given(beta_2, 0.999_real64), given(eps, 1e-8_real64), &
                given(weight_decay, 0.01_real64), flag(amsgrad))
  end subroutine torch_optim_AdamW

  !> Move every parameter that has a gradient.
  subroutine torch_optim_step(optim)
    class(torch_optim), intent(in) :: optim

    call c_step(optim%p)
  end subroutine torch_optim_step

  !> Set all gradients to 0.
  subroutine torch_optim_zero_grad(optim)
    class(torch_optim), intent(in) :: optim

    call c_zero_gradients(optim%p)
  end subroutine torch_optim_zero_grad

  !> Delete an optimiser; one that was never made is fine.
  subroutine torch_optim_delete(optim)
    type(torch_optim), intent(inout) :: optim

    call c_delete_optimizer(optim%p)
  end subroutine torch_optim_delete

  impure elemental subroutine finalise(optim)
    type(torch_optim), intent(inout) :: optim

    call c_forget_optimizer(optim%p)
  end subroutine finalise

  function handles_of(tensors) result(handles)
    type(torch_tensor), intent(in) :: tensors(:)
    type(c_ptr) :: handles(size(tensors))

    integer :: i

    do i = 1, size(tensors)
      handles(i) = handle_of(tensors(i))
    end do
  end function handles_of

  !> A number, or what it is by default.
  pure function given(number, default) result(value)
    real(real64), intent(in), optional :: number
    real(real64), intent(in) :: default
    real(real64) :: value

    value = default
    if (present(number)) value = number
  end function given

end module ftorch_optim
