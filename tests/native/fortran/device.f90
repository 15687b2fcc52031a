! SPDX-License-Identifier: MIT
!> Arrays on a device, said and recognised, streams, and registered arrays: device MODEL DEVICE
!> real|pretended. The model takes rows of 64 numbers.
program device
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_f_procpointer, c_funptr, c_int, &
    c_intptr_t, c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: real32
  use expectation, only: argument, expect, expect_error
  use torchspan
  implicit none

  abstract interface
    function allocating(memory, bytes) result(status) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), intent(out) :: memory
      integer(c_size_t), intent(in), value :: bytes
      integer(c_int) :: status
    end function allocating

    function copying(to, from, bytes, kind) result(status) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), intent(in), value :: to, from
      integer(c_size_t), intent(in), value :: bytes
      integer(c_int), intent(in), value :: kind
      integer(c_int) :: status
    end function copying
  end interface

  interface
    function dlsym(library, name) result(address) bind(c)
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), intent(in), value :: library
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: address
    end function dlsym
  end interface

  integer(c_intptr_t), parameter :: default_stream = 0
  real(real32), target :: x(64, 3), y(64, 3), wanted(64, 3)
  type(error_type), allocatable :: error
  type(model_type) :: net

  call net%load(argument(1), argument(2))
  call random_number(x)
  call net%run(x, wanted)
  call registered()
  if (argument(3) == "real") then
    call on_device()
  else
    call pretended()
  end if

contains

  subroutine pretended()
    y = 0
    call net%run(array(x, argument(2)), array(y, "cuda:1"))
    call expect(all(y == wanted), "arrays that are said to be on devices")
    y = 0
    call net%run_on(default_stream, array(x, device="cuda"), y)
    call expect(all(y == wanted), "a stream")
    call net%run(array(x, "cuda:2"), y, error)
    call expect_error(error, error_device, "cuda:2, which is not there")
    call net%run_on(default_stream, array(x, "xpu:0"), y, error)
    call expect_error(error, error_argument, "is in the memory of xpu:0")
    call net%run(array(x, "gpu"), y, error)
    call expect_error(error, error_argument, "input 1 is said to be on 'gpu', which is no device")
    call net%run(array(x, "cuda:one"), y, error)
    call expect_error(error, error_argument, "'cuda:one'")
    call net%run(array(x, ":"), y, error)
    call expect_error(error, error_argument, "':'")
  end subroutine pretended

  subroutine on_device()
    integer(c_size_t), parameter :: bytes = 64*3*4
    procedure(allocating), pointer :: cuda_malloc
    procedure(copying), pointer :: cuda_memcpy
    type(c_ptr) :: x_memory, y_memory
    real(real32), pointer :: x_there(:, :), y_there(:, :)

    call c_f_procpointer(dlsym(c_null_ptr, "cudaMalloc"//c_null_char), cuda_malloc)
    call c_f_procpointer(dlsym(c_null_ptr, "cudaMemcpy"//c_null_char), cuda_memcpy)
    if (cuda_malloc(x_memory, bytes) /= 0) error stop "cudaMalloc"
    if (cuda_malloc(y_memory, bytes) /= 0) error stop "cudaMalloc"
    if (cuda_memcpy(x_memory, c_loc(x), bytes, 1) /= 0) error stop "cudaMemcpy"
    call c_f_pointer(x_memory, x_there, shape(x))
    call c_f_pointer(y_memory, y_there, shape(y))
    call net%run(x_there, y_there)
    if (cuda_memcpy(c_loc(y), y_memory, bytes, 2) /= 0) error stop "cudaMemcpy"
    call expect(maxval(abs(y - wanted)) < 1e-3, "arrays that are recognised")
    call net%run_on(default_stream, array(x_there, "cuda:0"), array(y, "cpu"))
    call expect(maxval(abs(y - wanted)) < 1e-3, "arrays on a device")
  end subroutine on_device

  subroutine registered()
    real(real32), allocatable :: nothing(:, :), none(:)

    call register(x)
    call register(x, error)
    call expect_error(error, error_argument, "registered already")
    call register(x(:, 2:2), error)
    call expect_error(error, error_argument, "a part of the memory is registered already")
    call register(y)
    call net%run(x, y)
    call expect(maxval(abs(y - wanted)) < 1e-3, "registered arrays")
    call unregister(y)
    call unregister(x, error)
    call expect(.not. allocated(error), "an array is let go of")
    call unregister(x, error)
    call expect_error(error, error_argument, "no registered memory begins there")
    call register(x(1:32, :), error)
    call expect_error(error, error_argument, "a section with gaps")
    call unregister(x(:, 1:3:2), error)
    call expect_error(error, error_argument, "a section with gaps")
    call register(x(:, 2:3))
    call unregister(x(:, 2:3))
    call register(nothing, error)
    call expect_error(error, error_argument, "not allocated")
    allocate (none(0))
    call register(none)
    call unregister(none, error)
    call expect(.not. allocated(error), "an array of nothing")
  end subroutine registered

end program device
