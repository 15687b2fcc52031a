! SPDX-License-Identifier: MIT
!> What pytorch-fortran's classes do, beyond taking every kind and rank.
program lines
  use, intrinsic :: iso_c_binding, only: c_intptr_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use torch_ftn
  implicit none

  character(len=512) :: folder, device
  integer :: flags

  call get_command_argument(1, folder)
  call get_command_argument(2, device)
  flags = merge(module_use_device, 0, device == "device")
  call inference()
  call scalars()
  call sharing()
  call training()
  print "(a)", "every line holds"

contains

  subroutine expect(truth, what)
    logical, intent(in) :: truth
    character(len=*), intent(in) :: what

    if (.not. truth) error stop what
  end subroutine expect

  !> (2, 3) to (4, 2): the first dimension is the model's last.
  subroutine inference()
    type(torch_module) :: net
    type(torch_tensor_wrap) :: inputs
    type(torch_tensor) :: output, first
    real(real32), target :: x(3, 4)
    real(real32), allocatable :: big(:, :)
    real(real32), pointer :: y(:, :), part(:, :)
    integer :: i

    x = reshape([(real(i), i=1, 12)], [3, 4])
    call net%load(trim(folder)//"/sums.pt", flags + module_use_inference_mode)
    call inputs%create()
    call inputs%add_array(x)
    call net%forward(inputs, output)
    call output%to_array(y)
    call expect(all(shape(y) == [2, 4]), "forward's shape")
    call expect(all(y(1, :) == sum(x, 1)) .and. all(y(2, :) == x(3, :)), "forward")

    ! What is in the wrap is the array itself.
    x = 2*x
    call net%forward(inputs, output, 0)
    call output%to_array(y)
    call expect(all(y(1, :) == sum(x, 1)), "an array that has changed")

    ! The same wrap again, by create and by clear; sections and pointers.
    allocate (big(6, 8), source=1.0)
    call inputs%clear()
    call inputs%add_array(big(::2, 3:6))
    call net%forward(inputs, output)
    call output%to_array(y)
    call expect(all(y(1, :) == 3), "a section")
    part => x(:, 1:2)
    call inputs%create()
    call inputs%add_array(part)
    call net%forward(inputs, output)
    call output%to_array(y)
    call expect(all(shape(y) == [2, 2]) .and. all(y(1, :) == sum(x(:, 1:2), 1)), "a pointer")

    ! An output as an input, and of two results the first.
    call first%from_array(x)
    call expect(transfer(first%get_handle(), 0_c_intptr_t) /= 0, "get_handle")
    call net%load(trim(folder)//"/twice.pt", flags)
    do i = 1, 3
      call inputs%clear()
      call inputs%add_tensor(first)
      call net%forward(inputs, first)
    end do
    call first%to_array(y)
    call expect(all(y == 8*x), "a result as an input")
  end subroutine inference

  !> x*scale + count, whose types the model says.
  subroutine scalars()
    type(torch_module) :: net
    type(torch_tensor_wrap) :: inputs
    type(torch_tensor) :: output
    real(real64) :: x(2) = [1, 2]
    real(real64), pointer :: y(:)

    call net%load(trim(folder)//"/scalars.pt", flags)
    call inputs%create()
    call inputs%add_array(x)
    call inputs%add_scalar(0.5_real32)
    call inputs%add_scalar(7_int32)
    call net%forward(inputs, output)
    call output%to_array(y)
    call expect(all(y == 0.5*x + 7), "scalars of 32 bits")
    call inputs%clear()
    call inputs%add_array(x)
    call inputs%add_scalar(0.1_real64)
    call inputs%add_scalar(2_int64**40)
    call net%forward(inputs, output)
    call output%to_array(y)
    call expect(all(y == 0.1_real64*x + 2.0_real64**40), "scalars of 64 bits")
  end subroutine scalars

  !> Assigned tensors are one; what was freed twice is no danger.
  subroutine sharing()
    type(torch_tensor) :: one, empty, nothing
    type(torch_tensor) :: two(2)
    type(torch_tensor_wrap) :: many, again
    type(torch_module) :: net
    real(real32), target :: x(2) = [1, 2], z(2) = [5, 6]
    real(real32), pointer :: y(:), w(:)
    integer :: i

    call one%from_array(x)
    two = one
    one = one
    empty = two(1)
    empty = nothing
    call one%from_array(z)
    call two(2)%to_array(y)
    call expect(associated(y, x), "an assigned tensor")
    call expect(transfer(empty%get_handle(), 0_c_intptr_t) == 0, "an empty tensor assigned")
    call one%to_array(w)
    call expect(associated(w, z), "a tensor made again")
    do i = 1, 9
      call many%add_array(x)
    end do
    again = many
    call many%clear()
    call net%load(trim(folder)//"/nine.pt", flags)
    call net%forward(again, one)
    call one%to_array(y)
    call expect(all(y == 9*x), "nine inputs, assigned")
  end subroutine sharing

  !> One linear layer, by steps that the test repeats in Python.
  subroutine training()
    type(torch_module) :: net, trained
    type(torch_tensor_wrap) :: inputs
    type(torch_tensor) :: target, output
    real(real32) :: x(3, 4), y(2, 4), loss
    real(real32), pointer :: before(:, :), after(:, :)
    integer :: i

    x = reshape([(sin(real(i)), i=1, 12)], [3, 4])
    y = reshape([(cos(real(i)), i=1, 8)], [2, 4])
    call net%load(trim(folder)//"/linear.pt", flags)
    call net%create_optimizer_sgd(0.5)
    call inputs%create()
    call inputs%add_array(x)
    call target%from_array(y)
    do i = 1, 20
      call net%train(inputs, target, loss)
      print "(a, f12.8)", "loss ", loss
    end do
    call net%forward(inputs, output)
    call output%to_array(before)
    call net%save(trim(folder)//"/saved.pt")
    call trained%load(trim(folder)//"/saved.pt", flags)
    call trained%forward(inputs, target)
    call target%to_array(after)
    call expect(all(abs(after - before) < 1e-6), "a saved module")
    print "(a, 8f12.8)", "output ", after
  end subroutine training

end program lines
