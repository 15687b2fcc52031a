! SPDX-License-Identifier: MIT
!> Find the factors between two arrays, by each of the optimizers.
program optimizers
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use ftorch, only: assignment(=), operator(*), torch_delete, torch_kCPU, torch_loss_mse, &
    torch_optim, torch_optim_Adam, torch_optim_AdamW, torch_optim_SGD, torch_tensor, &
    torch_tensor_backward, torch_tensor_from_array
  implicit none

  call fit("SGD")
  call fit("Adam")
  call fit("AdamW")

contains

  subroutine fit(name)
    character(len=*), intent(in) :: name
    integer, parameter :: steps = 200
    real(real32), target :: input(4), wanted(4), factors(4), product(4), distance(1)
    type(torch_tensor) :: x, target, scale(1), output, loss
    type(torch_optim) :: optimizer
    integer :: step

    input = 1
    wanted = [1.0, 2.0, 3.0, 4.0]
    factors = 0
    call torch_tensor_from_array(x, input, torch_kCPU)
    call torch_tensor_from_array(target, wanted, torch_kCPU)
    call torch_tensor_from_array(scale(1), factors, torch_kCPU, requires_grad=.true.)
    call torch_tensor_from_array(output, product, torch_kCPU)
    call torch_tensor_from_array(loss, distance, torch_kCPU)
    select case (name)
    case ("SGD")
      call torch_optim_SGD(optimizer, scale, learning_rate=0.1_real64, momentum=0.9_real64)
    case ("Adam")
      call torch_optim_Adam(optimizer, scale, learning_rate=0.1_real64)
    case ("AdamW")
      call torch_optim_AdamW(optimizer, scale, learning_rate=0.1_real64, weight_decay=0.1_real64)
    end select

    do step = 1, steps
      call optimizer%zero_grad()
      output = scale(1)*x
      call torch_loss_mse(loss, output, target)
      call torch_tensor_backward(loss)
      call optimizer%step()
    end do
    print '(a5, ":", 4f6.2)', name, factors
    call torch_delete(optimizer)
    call torch_delete(x)
    call torch_delete(target)
    call torch_delete(scale)
    call torch_delete(output)
    call torch_delete(loss)
  end subroutine fit

end program optimizers
