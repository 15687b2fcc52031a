! SPDX-License-Identifier: MIT
!> Models.
module ftorch_model
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int32_t, c_null_char, &
    c_null_ptr, c_ptr
  use ftorch_library, only: flag, flush_output, index_of
  use ftorch_tensor, only: handle_of, torch_tensor, torch_tensor_delete
  implicit none
  private

  public :: torch_model_load, torch_model_forward, torch_model_save, torch_model_parameters
  public :: torch_model_print_parameters, torch_model_is_training, torch_model_delete

  !> A model on one device.
  type, public :: torch_model
    type(c_ptr) :: p = c_null_ptr
    !> 1 for a Python script
    integer(c_int32_t), private :: is_script = 0
  contains
    procedure :: print_parameters => torch_model_print_parameters
    procedure :: is_training => torch_model_is_training
    final :: finalise
  end type torch_model

  interface
    subroutine c_load(place, is_script, path, device, index, grad, training) &
        bind(c, name="tspan_ftorch_model_load")
      import :: c_char, c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      integer(c_int32_t), intent(inout) :: is_script
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int32_t), intent(in), value :: device, index, grad, training
    end subroutine c_load

    subroutine c_delete_model(place, is_script) bind(c, name="tspan_ftorch_model_delete")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      integer(c_int32_t), intent(in), value :: is_script
    end subroutine c_delete_model

    subroutine c_forget_model(place, is_script) bind(c, name="tspan_ftorch_model_forget")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(inout) :: place
      integer(c_int32_t), intent(in), value :: is_script
    end subroutine c_forget_model

    subroutine c_forward(model, is_script, inputs, input_count, outputs, output_count, grad) &
        bind(c, name="tspan_ftorch_model_forward")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: model
      integer(c_int32_t), intent(in), value :: is_script, input_count, output_count, grad
      type(c_ptr), intent(in) :: inputs(*)
      type(c_ptr), intent(inout) :: outputs(*)
    end subroutine c_forward

    subroutine c_save(model, is_script, path) bind(c, name="tspan_ftorch_model_save")
      import :: c_char, c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: model
      integer(c_int32_t), intent(in), value :: is_script
      character(kind=c_char), intent(in) :: path(*)
    end subroutine c_save

    function c_parameters(model, is_script, parameters, capacity) result(status) &
        bind(c, name="tspan_ftorch_model_parameters")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: model
      integer(c_int32_t), intent(in), value :: is_script, capacity
      type(c_ptr), intent(inout) :: parameters(*)
      integer(c_int32_t) :: status
    end function c_parameters

    subroutine c_print_model(model, is_script) bind(c, name="tspan_ftorch_model_print")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: model
      integer(c_int32_t), intent(in), value :: is_script
    end subroutine c_print_model

    function c_is_training(model, is_script) result(training) &
        bind(c, name="tspan_ftorch_model_is_training")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: model
      integer(c_int32_t), intent(in), value :: is_script
      integer(c_int32_t) :: training
    end function c_is_training
  end interface

contains

  !> Open a TorchScript file (.pt), a .pt2 file or a Python script (.py).
  subroutine torch_model_load(model, filename, device_type, device_index, requires_grad, &
                              is_training)
    type(torch_model), intent(inout) :: model
    character(*), intent(in) :: filename
    !> torch_kCPU, for example
    integer(c_int), intent(in) :: device_type
    integer(c_int), intent(in), optional :: device_index
    !> Whether every parameter wants gradients; if not .true., those do that the file says
    logical, intent(in), optional :: requires_grad
    !> Whether dropout and batch statistics work; .false. by default
    logical, intent(in), optional :: is_training

    call c_load(model%p, model%is_script, trim(filename)//c_null_char, device_type, &
                index_of(device_index), flag(requires_grad), flag(is_training))
  end subroutine torch_model_load

  !> Run a model. Results are written into the outputs' memory.
  subroutine torch_model_forward(model, input_tensors, output_tensors, requires_grad)
    type(torch_model), intent(in) :: model
    type(torch_tensor), intent(in) :: input_tensors(:)
    type(torch_tensor), intent(inout) :: output_tensors(:)
    !> Whether the outputs become results that can be differentiated; then they need not be made
    logical, intent(in), optional :: requires_grad

    type(c_ptr) :: inputs(size(input_tensors)), outputs(size(output_tensors))
    integer(c_int) :: i, grad

    grad = flag(requires_grad)
    do i = 1, size(inputs)
      inputs(i) = handle_of(input_tensors(i))
    end do
    do i = 1, size(outputs)
      if (grad == 0) then
        outputs(i) = handle_of(output_tensors(i))
      else
        outputs(i) = output_tensors(i)%p
      end if
    end do
    call c_forward(model%p, model%is_script, inputs, size(inputs), outputs, size(outputs), grad)
    if (grad == 0) return
    do i = 1, size(outputs)
      output_tensors(i)%p = outputs(i)
    end do
  end subroutine torch_model_forward

  !> Write a model as it is now.
  subroutine torch_model_save(model, filename)
    type(torch_model), intent(in) :: model
    character(*), intent(in) :: filename

    call c_save(model%p, model%is_script, trim(filename)//c_null_char)
  end subroutine torch_model_save

  !> The parameters, which the model goes on using.
  subroutine torch_model_parameters(model, output_tensors)
    type(torch_model), intent(in) :: model
    !> As many as the model has parameters
    type(torch_tensor), intent(inout) :: output_tensors(:)

    type(c_ptr) :: parameters(size(output_tensors))
    integer :: i

    if (c_parameters(model%p, model%is_script, parameters, size(parameters)) /= 0) return
    do i = 1, size(parameters)
      call torch_tensor_delete(output_tensors(i))
      output_tensors(i)%p = parameters(i)
    end do
  end subroutine torch_model_parameters

  !> Write the parameters' names and values to stdout.
  subroutine torch_model_print_parameters(model)
    class(torch_model), intent(in) :: model

    call flush_output()
    call c_print_model(model%p, model%is_script)
  end subroutine torch_model_print_parameters

  !> Whether dropout and batch statistics work.
  function torch_model_is_training(model) result(is_training)
    class(torch_model), intent(in) :: model
    logical :: is_training

    is_training = c_is_training(model%p, model%is_script) == 1
  end function torch_model_is_training

  !> Delete a model; one that was never loaded is fine.
  subroutine torch_model_delete(model)
    type(torch_model), intent(inout) :: model

    call c_delete_model(model%p, model%is_script)
  end subroutine torch_model_delete

  impure elemental subroutine finalise(model)
    type(torch_model), intent(inout) :: model

    call c_forget_model(model%p, model%is_script)
  end subroutine finalise

end module ftorch_model
