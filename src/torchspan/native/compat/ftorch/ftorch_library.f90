! SPDX-License-Identifier: MIT
!> What the modules call in C. Tensors are passed as the place of their handle where they may be
!> changed or are temporaries, and else as the handle.
module ftorch_library
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int32_t, c_int64_t, c_ptr
  use, intrinsic :: iso_fortran_env, only: output_unit
  implicit none
  public

  interface
    function c_check(status) result(kept) bind(c, name="tspan_compat_check")
      import :: c_int32_t
      implicit none
      integer(c_int32_t), intent(in), value :: status
      integer(c_int32_t) :: kept
    end function c_check

    function c_use(place, is_temporary) result(handle) bind(c, name="tspan_ftorch_use")
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), intent(in) :: place
      integer(c_int), intent(in), value :: is_temporary
      type(c_ptr) :: handle
    end function c_use

    subroutine c_fail_shape(ndims, sizes) bind(c, name="tspan_ftorch_fail_shape")
      import :: c_int32_t
      implicit none
      integer(c_int32_t), intent(in), value :: ndims, sizes
    end subroutine c_fail_shape

    subroutine c_delete(place) bind(c, name="tspan_ftorch_delete")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
    end subroutine c_delete

    subroutine c_forget(place) bind(c, name="tspan_ftorch_forget")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
    end subroutine c_forget

    subroutine c_from_blob(place, data, rank, sizes, layout, layout_size, dtype, device, index, &
                           grad) bind(c, name="tspan_ftorch_from_blob")
      import :: c_int32_t, c_int64_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      type(c_ptr), intent(in), value :: data
      integer(c_int32_t), intent(in), value :: rank, layout_size, dtype, device, index, grad
      integer(c_int64_t), intent(in) :: sizes(*)
      integer(c_int32_t), intent(in) :: layout(*)
    end subroutine c_from_blob

    subroutine c_from_array(place, data, layout, layout_size, device, index, grad) &
        bind(c, name="tspan_ftorch_from_array")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      type(*), dimension(..), intent(in) :: data
      integer(c_int32_t), intent(in) :: layout(*)
      integer(c_int32_t), intent(in), value :: layout_size, device, index, grad
    end subroutine c_from_array

    subroutine c_filled(place, fill, rank, sizes, dtype, device, index, grad) &
        bind(c, name="tspan_ftorch_filled")
      import :: c_int32_t, c_int64_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      integer(c_int32_t), intent(in), value :: fill, rank, dtype, device, index, grad
      integer(c_int64_t), intent(in) :: sizes(*)
    end subroutine c_filled

    function c_get_dtype(tensor) result(dtype) bind(c, name="tspan_ftorch_get_dtype")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int32_t) :: dtype
    end function c_get_dtype

    function c_get_device(tensor, index) result(device) bind(c, name="tspan_ftorch_get_device")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int32_t), intent(out) :: index
      integer(c_int32_t) :: device
    end function c_get_device

    function c_get_sizes(tensor, strides, capacity, sizes) result(rank) &
        bind(c, name="tspan_ftorch_get_sizes")
      import :: c_int32_t, c_int64_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int32_t), intent(in), value :: strides, capacity
      integer(c_int64_t), intent(inout) :: sizes(*)
      integer(c_int32_t) :: rank
    end function c_get_sizes

    subroutine c_print(tensor) bind(c, name="tspan_ftorch_print")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
    end subroutine c_print

    function c_requires_grad(tensor, wanted) result(status) &
        bind(c, name="tspan_tensor_requires_grad")
      import :: c_int, c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int), intent(inout) :: wanted
      integer(c_int32_t) :: status
    end function c_requires_grad

    function c_zero(tensor) result(status) bind(c, name="tspan_tensor_zero")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int32_t) :: status
    end function c_zero

    function c_zero_gradient(tensor) result(status) bind(c, name="tspan_tensor_zero_gradient")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int32_t) :: status
    end function c_zero_gradient

    function c_convert(source, non_blocking, target) result(status) &
        bind(c, name="tspan_tensor_convert")
      import :: c_int, c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: source, target
      integer(c_int), intent(in), value :: non_blocking
      integer(c_int32_t) :: status
    end function c_convert

    function c_backward(tensor, external, retain_graph) result(status) &
        bind(c, name="tspan_tensor_backward")
      import :: c_int, c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor, external
      integer(c_int), intent(in), value :: retain_graph
      integer(c_int32_t) :: status
    end function c_backward

    subroutine c_gradient(tensor, gradient) bind(c, name="tspan_ftorch_gradient")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      type(c_ptr), intent(inout) :: gradient
    end subroutine c_gradient

    subroutine c_assign(to, from) bind(c, name="tspan_ftorch_assign")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(inout) :: to
      type(c_ptr), intent(in), value :: from
    end subroutine c_assign

    function c_combine(operation, left, right) result(tensor) bind(c, name="tspan_ftorch_combine")
      import :: c_int32_t, c_ptr
      implicit none
      integer(c_int32_t), intent(in), value :: operation
      type(c_ptr), intent(in), value :: left, right
      type(c_ptr) :: tensor
    end function c_combine

    function c_combine_number(operation, tensor, number, first, is_real) result(combined) &
        bind(c, name="tspan_ftorch_combine_number")
      import :: c_double, c_int32_t, c_ptr
      implicit none
      integer(c_int32_t), intent(in), value :: operation, first, is_real
      type(c_ptr), intent(in), value :: tensor
      real(c_double), intent(in), value :: number
      type(c_ptr) :: combined
    end function c_combine_number

    function c_negate(tensor) result(negative) bind(c, name="tspan_ftorch_negate")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      type(c_ptr) :: negative
    end function c_negate

    function c_power(tensor, exponent) result(power) bind(c, name="tspan_ftorch_power")
      import :: c_double, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      real(c_double), intent(in), value :: exponent
      type(c_ptr) :: power
    end function c_power

    function c_power_integer(tensor, exponent) result(power) &
        bind(c, name="tspan_ftorch_power_integer")
      import :: c_int64_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int64_t), intent(in), value :: exponent
      type(c_ptr) :: power
    end function c_power_integer

    subroutine c_reduce(mean, tensor, output) bind(c, name="tspan_ftorch_reduce")
      import :: c_int32_t, c_ptr
      implicit none
      integer(c_int32_t), intent(in), value :: mean
      type(c_ptr), intent(in), value :: tensor
      type(c_ptr), intent(inout) :: output
    end subroutine c_reduce

    subroutine c_loss(entropy, input, target, reduction, loss) bind(c, name="tspan_ftorch_loss")
      import :: c_int32_t, c_ptr
      implicit none
      integer(c_int32_t), intent(in), value :: entropy, reduction
      type(c_ptr), intent(in), value :: input, target
      type(c_ptr), intent(inout) :: loss
    end subroutine c_loss
  end interface

contains

  !> Fortran's own output so far, before C writes.
  subroutine flush_output()
    flush (output_unit)
  end subroutine flush_output

  !> Go on after a status that is no error, or where the environment says so.
  subroutine check(status)
    integer(c_int32_t), intent(in) :: status

    integer(c_int32_t) :: kept

    kept = c_check(status)
  end subroutine check

  !> A logical that may be absent, for C: .false. is the default.
  pure function flag(wanted) result(number)
    logical, intent(in), optional :: wanted
    integer(c_int) :: number

    number = 0
    if (present(wanted)) number = merge(1, 0, wanted)
  end function flag

  !> A device's index that may be absent.
  pure function index_of(device_index) result(number)
    integer(c_int), intent(in), optional :: device_index
    integer(c_int) :: number

    number = -1
    if (present(device_index)) number = device_index
  end function index_of

end module ftorch_library
