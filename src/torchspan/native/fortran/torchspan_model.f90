! SPDX-License-Identifier: MIT
!> Model files, opened on one device or on many.
!>
!> `run` and `submit` take an array of any kind and rank, or an array of `array(x)`, in the same
!> arguments: two procedures under one name would be ambiguous. These arguments have no INTENT, so
!> that outputs may be given as the expression `[array(y1), array(y2)]`.
module torchspan_model
  use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_intptr_t, c_null_char, &
    c_null_ptr, c_ptr
  use torchspan_error, only: check, copy_text, error_type
  use torchspan_handle, only: handle_type, place_type
  use torchspan_request, only: request_type
  implicit none
  private

  !> An open model. Assigned models share one: it is freed when the last of them is closed or goes.
  type, public :: model_type
    private
    type(handle_type) :: handle
  contains
    !> `call net%load("net.pt2", "cuda:0,cuda:1", error)`
    procedure :: load
    !> `call net%run(x, y, error)`
    procedure :: run
    !> `call net%run_on(stream, x, y, error)`
    procedure :: run_on
    !> `call net%submit(x, y, request, error)`
    procedure :: submit
    !> `call net%describe(json, error)`
    procedure :: describe
    !> `call net%close()`
    procedure :: close
    procedure, private :: assign
    generic :: assignment(=) => assign
  end type model_type

  interface
    function c_load(place, path, devices) result(status) bind(c, name="tspan_fortran_load")
      import :: c_char, c_int32_t, place_type
      implicit none
      type(place_type), intent(inout) :: place
      character(kind=c_char), intent(in) :: path(*)
      character(kind=c_char), intent(in), optional :: devices(*)
      integer(c_int32_t) :: status
    end function c_load

    function c_run(place, x, y) result(status) bind(c, name="tspan_fortran_run")
      import :: c_int32_t, place_type
      implicit none
      type(place_type), intent(in) :: place
      type(*), dimension(..) :: x, y
      integer(c_int32_t) :: status
    end function c_run

    function c_run_on(place, stream, x, y) result(status) &
      bind(c, name="tspan_fortran_run_on")
      import :: c_int32_t, c_intptr_t, place_type
      implicit none
      type(place_type), intent(in) :: place
      integer(c_intptr_t), intent(in), value :: stream
      type(*), dimension(..) :: x, y
      integer(c_int32_t) :: status
    end function c_run_on

    function c_submit(place, x, y, request) result(status) &
      bind(c, name="tspan_fortran_submit")
      import :: c_int32_t, place_type
      implicit none
      type(place_type), intent(in) :: place
      type(*), dimension(..), asynchronous :: x, y
      type(place_type), intent(inout) :: request
      integer(c_int32_t) :: status
    end function c_submit

    function c_describe(place, text) result(status) bind(c, name="tspan_fortran_describe")
      import :: c_int32_t, c_ptr, place_type
      implicit none
      type(place_type), intent(in) :: place
      type(c_ptr), intent(inout) :: text
      integer(c_int32_t) :: status
    end function c_describe
  end interface

contains

  !> Open a model file. A model that this variable held before is closed.
  subroutine load(self, path, devices, error)
    class(model_type), intent(inout) :: self
    !> A .pt2 or .pt file
    character(len=*), intent(in) :: path
    !> Where to run: "cuda", "cuda:0,cuda:1", "rank", "cpu", "cpu:0,cpu:1"; "all" if absent
    character(len=*), intent(in), optional :: devices
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    type(place_type) :: place
    integer(c_int32_t) :: status

    if (present(devices)) then
      status = c_load(place, trim(path)//c_null_char, trim(devices)//c_null_char)
    else
      status = c_load(place, trim(path)//c_null_char)
    end if
    if (status == 0) call self%handle%own(place)
    call check(status, error)
  end subroutine load

  !> Run a batch: rows, along the last dimension, are split over the devices.
  subroutine run(self, x, y, error)
    class(model_type), intent(in) :: self
    !> The input, or several: `[array(x1), array(x2)]`
    type(*), dimension(..), target :: x
    !> The output, or several, which are overwritten
    type(*), dimension(..), target :: y
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    call check(c_run(self%handle%place, x, y), error)
  end subroutine run

  !> Run a batch as a part of a stream of the first device's: after what is there, and before what
  !> is put there next. Where every array is in devices' memory it returns before that is done.
  subroutine run_on(self, stream, x, y, error)
    class(model_type), intent(in) :: self
    !> A CUDA or HIP stream, or the address of a SYCL queue; 0 is the default stream
    integer(c_intptr_t), intent(in) :: stream
    !> The input, or several: `[array(x1), array(x2)]`
    type(*), dimension(..), target :: x
    !> The output, or several, which are overwritten
    type(*), dimension(..), target :: y
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    call check(c_run_on(self%handle%place, stream, x, y), error)
  end subroutine run_on

  !> Start a batch and return at once. Until the request is done, inputs must stay as they are and
  !> outputs must not be touched: declare them ASYNCHRONOUS or TARGET.
  subroutine submit(self, x, y, request, error)
    class(model_type), intent(in) :: self
    !> The input, or several: `[array(x1), array(x2)]`
    type(*), dimension(..), asynchronous, target :: x
    !> The output, or several
    type(*), dimension(..), asynchronous, target :: y
    !> What to wait for
    type(request_type), intent(inout) :: request
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    type(place_type) :: place
    integer(c_int32_t) :: status

    status = c_submit(self%handle%place, x, y, place)
    if (status == 0) call request%handle%own(place)
    call check(status, error)
  end subroutine submit

  !> What the model says of itself: inputs, outputs, builds.
  subroutine describe(self, json, error)
    class(model_type), intent(in) :: self
    !> JSON
    character(len=:), allocatable, intent(out) :: json
    !> What went wrong
    type(error_type), allocatable, intent(out), optional :: error

    type(c_ptr) :: text
    integer(c_int32_t) :: status

    text = c_null_ptr
    status = c_describe(self%handle%place, text)
    if (status == 0) json = copy_text(text)
    call check(status, error)
  end subroutine describe

  !> Give the model up; closing one that is not open does nothing.
  impure elemental subroutine close(self)
    class(model_type), intent(inout) :: self

    call self%handle%release()
  end subroutine close

  impure elemental subroutine assign(self, other)
    class(model_type), intent(inout) :: self
    class(model_type), intent(in) :: other

    self%handle = other%handle
  end subroutine assign

end module torchspan_model
