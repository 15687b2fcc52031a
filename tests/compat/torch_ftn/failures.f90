! SPDX-License-Identifier: MIT
!> One mistake a run, by its number; says what it found where the program goes on.
program failures
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int16, real32, real64
  use torch_ftn
  implicit none

  interface
    function tspan_last_error() result(text) bind(c)
      import :: c_ptr
      type(c_ptr) :: text
    end function tspan_last_error
    function strlen(text) result(length) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function strlen
  end interface

  type(torch_module) :: net
  type(torch_pymodule) :: script
  type(torch_tensor) :: x, y
  type(torch_tensor_wrap) :: inputs
  real(real32), target :: a(3, 4) = 1, b(9) = 1
  real(real32), pointer :: p(:, :), nowhere(:)
  real(real64), pointer :: q(:, :)
  real(real32) :: loss = 0
  integer(int16) :: short(2) = 1
  character(len=512) :: folder, number
  character(kind=c_char), pointer :: said(:)
  type(c_ptr) :: text
  logical :: completed

  call get_command_argument(1, folder)
  call get_command_argument(2, number)
  folder = trim(folder)//"/"
  completed = .true.
  nullify (p, q, nowhere)
  call net%load(trim(folder)//"sums.pt")
  call inputs%add_array(a)
  select case (number)
  case ("missing")
    call net%load(trim(folder)//"no.pt")
  case ("flags")
    call net%load(trim(folder)//"sums.pt", 4)
  case ("device")
    call net%load(trim(folder)//"sums.pt", module_use_device)
  case ("unloaded")
    call script%forward(inputs, y)
  case ("kind")
    call x%from_array(short)
  case ("rank")
    call x%from_array(loss)
  case ("scalar")
    call inputs%add_scalar(a)
  case ("pointer")
    call x%from_array(nowhere)
  case ("empty")
    call x%to_array(p)
  case ("add")
    call inputs%add_tensor(x)
  case ("dtype")
    call x%from_array(a)
    call x%to_array(q)
  case ("dimensions")
    call x%from_array(b)
    call x%to_array(p)
  case ("inputs")
    call inputs%add_array(a)
    call net%forward(inputs, y)
  case ("none")
    call inputs%clear()
    call net%forward(inputs, y)
  case ("optimizer")
    call x%from_array(a)
    call net%train(inputs, x, loss)
  case ("parameters")
    call net%create_optimizer_sgd(0.1)
  case ("target")
    call net%load(trim(folder)//"linear.pt")
    call net%create_optimizer_sgd(0.1)
    call x%from_array(b)
    call net%train(inputs, x, loss)
  case ("save")
    call net%save(trim(folder)//"no/where.pt")
  case ("script")
    call script%load(trim(folder)//"raising.py")
    call script%forward(inputs, y)
  case ("completed")
    call script%load(trim(folder)//"raising.py")
    call x%from_array(a)
    completed = script%train(inputs, x, loss)
  case default
    error stop "no such mistake"
  end select
  text = tspan_last_error()
  call c_f_pointer(text, said, [strlen(text)])
  print "(*(a))", said
  if (associated(p) .or. associated(q)) error stop "a pointer to nothing"
  if (number == "completed" .and. completed) error stop "nothing is completed"
  if (number == "target" .and. loss == loss) error stop "there is no loss"
end program failures
