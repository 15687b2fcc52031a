! SPDX-License-Identifier: MIT
!> Fit 3 x - 1 with each optimiser; tensors are made again in every step, or once.
program training
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use ftorch
  use ftorch_loss, only: torch_loss_again => torch_loss_mse
  use ftorch_optim, only: torch_optim_again => torch_optim
  implicit none

  real(real32), target :: x(4, 1), wanted(4, 1), got(4, 1), error(1), each(4, 1)
  real(real32), target :: scores(3, 2)
  integer(kind=8), target :: classes(3)
  character(500) :: folder
  integer :: i

  call get_command_argument(1, folder)
  x(:, 1) = [0., 1., 2., 3.]
  wanted = 3 * x - 1
  do i = 1, 4
    call fit(i, again=.true.)
    call fit(i, again=.false.)
  end do
  call losses()
  print "(a)", "all"
contains
  subroutine fit(number, again)
    integer, intent(in) :: number
    logical, intent(in) :: again

    type(torch_model) :: model
    type(torch_optim_again) :: optim
    type(torch_tensor) :: inputs(1), outputs(1), target, loss, parameters(2)
    integer :: step

    call torch_model_load(model, trim(folder)//"/line.pt", torch_kCPU, requires_grad=.true., &
                          is_training=.true.)
    call torch_model_parameters(model, parameters)
    select case (number)
    case (1)
      call torch_optim_SGD(optim, parameters, learning_rate=0.1_real64)
    case (2)
      call torch_optim_SGD(optim, parameters, 0.05_real64, momentum=0.5_real64, &
                           weight_decay=0.0_real64, dampening=0.0_real64, nesterov=.true.)
    case (3)
      call torch_optim_Adam(optim, parameters, learning_rate=0.1_real64, beta_1=0.9_real64, &
                            beta_2=0.999_real64, eps=1e-8_real64, amsgrad=.true.)
    case (4)
      call torch_optim_AdamW(optim, parameters, learning_rate=0.1_real64, weight_decay=0.0_real64)
    end select
    call torch_tensor_from_array(inputs(1), x, torch_kCPU)
    call torch_tensor_from_array(target, wanted, torch_kCPU)
    do step = 1, 400
      if (again .or. step == 1) then
        call torch_tensor_from_array(outputs(1), got, torch_kCPU)
        call torch_tensor_from_array(loss, error, torch_kCPU)
      end if
      call optim%zero_grad()
      call torch_model_forward(model, inputs, outputs, requires_grad=.true.)
      call torch_loss_again(loss, outputs(1), target)
      call torch_tensor_backward(loss)
      call torch_optim_step(optim)
    end do
    call expect(error(1) < 1e-2 .and. all(abs(got - wanted) < 0.2), "fitted")
    call torch_optim_zero_grad(optim)
    call torch_delete(optim)
    call torch_optim_delete(optim)
  end subroutine fit

  subroutine losses()
    type(torch_tensor) :: a, b, loss

    got = wanted + 2
    call torch_tensor_from_array(a, got, torch_kCPU)
    call torch_tensor_from_array(b, wanted, torch_kCPU)
    call torch_tensor_from_array(loss, error, torch_kCPU)
    call torch_loss_mse(loss, a, b, torch_kSum)
    call expect(error(1) == 16, "sum")
    call torch_loss_mse(loss, a, b, reduction_type=torch_kMean)
    call expect(error(1) == 4, "mean")
    call torch_tensor_from_array(loss, each, torch_kCPU)
    call torch_loss_mse(loss, a, b, torch_kNone)
    call expect(all(each == 4), "none")
    scores = 0
    classes = [0, 1, 0]
    call torch_tensor_from_array(a, scores, torch_kCPU)
    call torch_tensor_from_array(b, classes, torch_kCPU)
    call torch_tensor_from_array(loss, error, torch_kCPU)
    call torch_loss_cross_entropy(loss, a, b)
    call expect(abs(error(1) - log(2.)) < 1e-6, "cross entropy")
  end subroutine losses
end program training
