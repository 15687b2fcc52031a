! SPDX-License-Identifier: MIT
!> Run a model three times on numbers that stay in a GPU's memory, from Fortran.
program gpu_arrays_infer_fortran
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_intptr_t, c_loc, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: real32
  use torchspan, only: array, model_type
  implicit none

  interface
    function device_allocate(bytes) result(memory) bind(c)
      import :: c_ptr, c_size_t
      integer(c_size_t), intent(in), value :: bytes
      type(c_ptr) :: memory
    end function device_allocate

    subroutine device_copy(to, from, bytes) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), intent(in), value :: to, from
      integer(c_size_t), intent(in), value :: bytes
    end subroutine device_copy

    subroutine device_free(memory) bind(c)
      import :: c_ptr
      type(c_ptr), intent(in), value :: memory
    end subroutine device_free
  end interface

  integer(c_intptr_t), parameter :: default_stream = 0
  integer(c_size_t), parameter :: bytes = 5*4
  real(real32), target :: v(5, 1)
  real(real32), pointer :: x(:, :), y(:, :), before(:, :)
  type(model_type) :: net
  character(len=256) :: path
  integer :: step

  if (command_argument_count() /= 1) error stop "usage: gpu_arrays_infer_fortran MODEL"
  call get_command_argument(1, path)
  call c_f_pointer(device_allocate(bytes), x, [5, 1])
  call c_f_pointer(device_allocate(bytes), y, [5, 1])
  v(:, 1) = [0.0, 1.0, 2.0, 3.0, 4.0]
  call device_copy(c_loc(x), c_loc(v), bytes)
  call net%load(path, "cuda:0")
  do step = 1, 3
    ! In the default stream: the call returns at once, and the next one waits for it.
    call net%run_on(default_stream, array(x, "cuda:0"), array(y, "cuda:0"))
    before => x
    x => y
    y => before
  end do
  call device_copy(c_loc(v), c_loc(x), bytes)
  print '("[", 4(f5.1, ","), f5.1, "]")', v
  call device_free(c_loc(x))
  call device_free(c_loc(y))
end program gpu_arrays_infer_fortran
