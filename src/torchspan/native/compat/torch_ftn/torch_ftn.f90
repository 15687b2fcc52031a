! SPDX-License-Identifier: MIT
!> For programs written for pytorch-fortran: its names and conventions, on torchspan.
!>
!> An array (n1, ..., nk) is the tensor (nk, ..., n1) over the same memory. A variable copied
!> bit by bit is no danger: a handle that was freed is known as such, and using it is an error.
module torch_ftn
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_float, c_int32_t, c_int64_t, &
    c_null_char, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private

  !> Flags of load, which may be added: compute on this process's accelerator
  integer, parameter, public :: module_use_device = 1
  !> forward never records gradients, with this flag or without
  integer, parameter, public :: module_use_inference_mode = 2

  type, bind(c) :: tensor_place
    type(c_ptr) :: tensor = c_null_ptr
    type(c_ptr) :: copy = c_null_ptr
  end type tensor_place

  type, bind(c) :: module_place
    type(c_ptr) :: module = c_null_ptr
    type(c_ptr) :: optimizer = c_null_ptr
    character(kind=c_char) :: device(16) = c_null_char
  end type module_place

  !> A tensor, over an array of the program's or a module's result
  type, public :: torch_tensor
    private
    type(tensor_place) :: place
  contains
    !> `call tensor%from_array(array)`: a tensor over the array, which must outlive it
    procedure :: from_array
    !> `call tensor%to_array(pointer)`: the tensor's memory, until the tensor is filled anew or goes
    generic :: to_array => to_real32, to_real64, to_int32, to_int64
    !> `handle = tensor%get_handle()`: what torchspan_tensor.h calls a tspan_tensor*
    procedure :: get_handle
    procedure, private :: to_real32
    procedure, private :: to_real64
    procedure, private :: to_int32
    procedure, private :: to_int64
    procedure, private :: assign_tensor
    !> Both variables are the same tensor
    generic :: assignment(=) => assign_tensor
    final :: free_tensor
  end type torch_tensor

  !> The inputs of a module, in the order in which they were added
  type, public :: torch_tensor_wrap
    private
    type(c_ptr), allocatable :: tensors(:)
    integer :: count = 0
  contains
    !> `call wrap%create()`: begin with nothing in it
    procedure :: create => clear
    !> `call wrap%add_tensor(tensor)`
    procedure :: add_tensor
    !> `call wrap%add_scalar(value)`: a number, which is copied
    procedure :: add_scalar
    !> `call wrap%add_array(array)`: an array, which must outlive its place here
    procedure :: add_array
    !> `call wrap%clear()`
    procedure :: clear
    procedure, private :: append
    procedure, private :: assign_wrap
    generic :: assignment(=) => assign_wrap
    final :: free_wrap
  end type torch_tensor_wrap

  !> A TorchScript module; a .pt2 or .py is run, too. Several threads may call forward at once.
  type, public :: torch_module
    private
    type(module_place) :: place
  contains
    !> `call module%load(filename, flags)`
    procedure :: load => load_module
    !> `call module%forward(inputs, output, flags)`
    procedure :: forward => forward_module
    !> `call module%create_optimizer_sgd(learning_rate)`
    procedure :: create_optimizer_sgd
    !> `call module%train(inputs, target, loss)`: one step on the mean squared error
    procedure :: train => train_module
    !> `call module%save(filename)`
    procedure :: save => save_module
    final :: free_module
  end type torch_module

  !> A Python script; any number of them may be open.
  type, public :: torch_pymodule
    private
    type(module_place) :: place
  contains
    !> `call module%load(filename)`
    procedure :: load => load_script
    !> `call module%forward(inputs, output)`: the script's ftn_pytorch_forward
    procedure :: forward => forward_script
    !> `is_completed = module%train(inputs, target, loss)`: its ftn_pytorch_train
    procedure :: train => train_script
    !> `call module%save(filename)`: its ftn_pytorch_save
    procedure :: save => save_script
    final :: free_script
  end type torch_pymodule

  interface
    subroutine c_wrap(array, tensor) bind(c, name="torch_ftn_wrap")
      import :: c_ptr
      implicit none
      type(*), dimension(..), intent(in) :: array
      type(c_ptr), intent(inout) :: tensor
    end subroutine c_wrap

    subroutine c_scalar(value, tensor) bind(c, name="torch_ftn_scalar")
      import :: c_ptr
      implicit none
      type(*), dimension(..), intent(in) :: value
      type(c_ptr), intent(inout) :: tensor
    end subroutine c_scalar

    subroutine c_share(from, tensor) bind(c, name="torch_ftn_share")
      import :: c_ptr
      implicit none
      type(c_ptr), intent(in), value :: from
      type(c_ptr), intent(inout) :: tensor
    end subroutine c_share

    subroutine c_assign(from, place) bind(c, name="torch_ftn_assign")
      import :: c_ptr, tensor_place
      implicit none
      type(c_ptr), intent(in), value :: from
      type(tensor_place), intent(inout) :: place
    end subroutine c_assign

    subroutine c_tensor_free(place) bind(c, name="torch_ftn_tensor_free")
      import :: tensor_place
      implicit none
      type(tensor_place), intent(inout) :: place
    end subroutine c_tensor_free

    function c_delete(tensor) result(status) bind(c, name="tspan_tensor_delete")
      import :: c_int32_t, c_ptr
      implicit none
      type(c_ptr), intent(in), value :: tensor
      integer(c_int32_t) :: status
    end function c_delete

    subroutine c_module_free(place) bind(c, name="torch_ftn_module_free")
      import :: module_place
      implicit none
      type(module_place), intent(inout) :: place
    end subroutine c_module_free

    subroutine c_load(place, path, flags) bind(c, name="torch_ftn_load")
      import :: c_char, c_int32_t, module_place
      implicit none
      type(module_place), intent(inout) :: place
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int32_t), intent(in), value :: flags
    end subroutine c_load

    subroutine c_forward(place, inputs, count, output) bind(c, name="torch_ftn_forward")
      import :: c_int64_t, c_ptr, module_place, tensor_place
      implicit none
      type(module_place), intent(in) :: place
      type(c_ptr), intent(in) :: inputs(*)
      integer(c_int64_t), intent(in), value :: count
      type(tensor_place), intent(inout) :: output
    end subroutine c_forward

    subroutine c_optimizer(place, learning_rate) bind(c, name="torch_ftn_optimizer")
      import :: c_float, module_place
      implicit none
      type(module_place), intent(inout) :: place
      real(c_float), intent(in), value :: learning_rate
    end subroutine c_optimizer

    subroutine c_train(place, inputs, count, target, loss) bind(c, name="torch_ftn_train")
      import :: c_float, c_int64_t, c_ptr, module_place
      implicit none
      type(module_place), intent(inout) :: place
      type(c_ptr), intent(in) :: inputs(*)
      integer(c_int64_t), intent(in), value :: count
      type(c_ptr), intent(in), value :: target
      real(c_float), intent(inout) :: loss
    end subroutine c_train

    function c_train_script(place, inputs, count, target, loss) result(complete) &
      bind(c, name="torch_ftn_train_script")
      import :: c_float, c_int32_t, c_int64_t, c_ptr, module_place
      implicit none
      type(module_place), intent(inout) :: place
      type(c_ptr), intent(in) :: inputs(*)
      integer(c_int64_t), intent(in), value :: count
      type(c_ptr), intent(in), value :: target
      real(c_float), intent(inout) :: loss
      integer(c_int32_t) :: complete
    end function c_train_script

    subroutine c_save(place, path) bind(c, name="torch_ftn_save")
      import :: c_char, module_place
      implicit none
      type(module_place), intent(in) :: place
      character(kind=c_char), intent(in) :: path(*)
    end subroutine c_save

    subroutine c_point_real32(place, pointer) bind(c, name="torch_ftn_point_real32")
      import :: c_float, tensor_place
      implicit none
      type(tensor_place), intent(inout) :: place
      real(c_float), pointer, intent(inout) :: pointer(..)
    end subroutine c_point_real32

    subroutine c_point_real64(place, pointer) bind(c, name="torch_ftn_point_real64")
      import :: c_double, tensor_place
      implicit none
      type(tensor_place), intent(inout) :: place
      real(c_double), pointer, intent(inout) :: pointer(..)
    end subroutine c_point_real64

    subroutine c_point_int32(place, pointer) bind(c, name="torch_ftn_point_int32")
      import :: c_int32_t, tensor_place
      implicit none
      type(tensor_place), intent(inout) :: place
      integer(c_int32_t), pointer, intent(inout) :: pointer(..)
    end subroutine c_point_int32

    subroutine c_point_int64(place, pointer) bind(c, name="torch_ftn_point_int64")
      import :: c_int64_t, tensor_place
      implicit none
      type(tensor_place), intent(inout) :: place
      integer(c_int64_t), pointer, intent(inout) :: pointer(..)
    end subroutine c_point_int64
  end interface

contains

  subroutine from_array(self, array)
    class(torch_tensor), intent(inout) :: self
    !> real32, real64, int32 or int64, of rank 1 to 7
    type(*), dimension(..), intent(in), target :: array

    call c_tensor_free(self%place)
    call c_wrap(array, self%place%tensor)
  end subroutine from_array

  subroutine to_real32(self, pointer)
    class(torch_tensor), intent(inout) :: self
    real(real32), pointer, intent(inout) :: pointer(..)

    call c_point_real32(self%place, pointer)
  end subroutine to_real32

  subroutine to_real64(self, pointer)
    class(torch_tensor), intent(inout) :: self
    real(real64), pointer, intent(inout) :: pointer(..)

    call c_point_real64(self%place, pointer)
  end subroutine to_real64

  subroutine to_int32(self, pointer)
    class(torch_tensor), intent(inout) :: self
    integer(int32), pointer, intent(inout) :: pointer(..)

    call c_point_int32(self%place, pointer)
  end subroutine to_int32

  subroutine to_int64(self, pointer)
    class(torch_tensor), intent(inout) :: self
    integer(int64), pointer, intent(inout) :: pointer(..)

    call c_point_int64(self%place, pointer)
  end subroutine to_int64

  function get_handle(self) result(handle)
    class(torch_tensor), intent(in) :: self
    type(c_ptr) :: handle

    handle = self%place%tensor
  end function get_handle

  impure elemental subroutine assign_tensor(to, from)
    class(torch_tensor), intent(inout) :: to
    class(torch_tensor), intent(in) :: from

    call c_assign(from%place%tensor, to%place)
  end subroutine assign_tensor

  impure elemental subroutine free_tensor(self)
    type(torch_tensor), intent(inout) :: self

    call c_tensor_free(self%place)
  end subroutine free_tensor

  subroutine append(self, tensor)
    class(torch_tensor_wrap), intent(inout) :: self
    type(c_ptr), intent(in) :: tensor

    type(c_ptr), allocatable :: more(:)

    if (.not. allocated(self%tensors)) allocate (self%tensors(4))
    if (self%count == size(self%tensors)) then
      allocate (more(2*self%count))
      more(:self%count) = self%tensors
      call move_alloc(more, self%tensors)
    end if
    self%count = self%count + 1
    self%tensors(self%count) = tensor
  end subroutine append

  subroutine add_tensor(self, tensor)
    class(torch_tensor_wrap), intent(inout) :: self
    class(torch_tensor), intent(in) :: tensor

    type(c_ptr) :: added

    call c_share(tensor%place%tensor, added)
    call self%append(added)
  end subroutine add_tensor

  subroutine add_scalar(self, value)
    class(torch_tensor_wrap), intent(inout) :: self
    !> real32, real64, int32 or int64
    type(*), dimension(..), intent(in), target :: value

    type(c_ptr) :: added

    call c_scalar(value, added)
    call self%append(added)
  end subroutine add_scalar

  subroutine add_array(self, array)
    class(torch_tensor_wrap), intent(inout) :: self
    !> real32, real64, int32 or int64, of rank 1 to 7
    type(*), dimension(..), intent(in), target :: array

    type(c_ptr) :: added

    call c_wrap(array, added)
    call self%append(added)
  end subroutine add_array

  subroutine clear(self)
    class(torch_tensor_wrap), intent(inout) :: self

    integer :: i
    integer(c_int32_t) :: ignored

    do i = 1, self%count
      ignored = c_delete(self%tensors(i))
    end do
    self%count = 0
  end subroutine clear

  impure elemental subroutine assign_wrap(to, from)
    class(torch_tensor_wrap), intent(inout) :: to
    class(torch_tensor_wrap), intent(in) :: from

    type(torch_tensor_wrap) :: taken
    type(c_ptr) :: shared
    integer :: i

    do i = 1, from%count
      call c_share(from%tensors(i), shared)
      call taken%append(shared)
    end do
    call to%clear()
    do i = 1, taken%count
      call to%append(taken%tensors(i))
    end do
    taken%count = 0
  end subroutine assign_wrap

  impure elemental subroutine free_wrap(self)
    type(torch_tensor_wrap), intent(inout) :: self

    call self%clear()
  end subroutine free_wrap

  subroutine load_module(self, filename, flags)
    class(torch_module), intent(inout) :: self
    character(len=*), intent(in) :: filename
    !> A sum of module_use_device and module_use_inference_mode
    integer, intent(in), optional :: flags

    integer(c_int32_t) :: given

    given = 0
    if (present(flags)) given = int(flags, c_int32_t)
    call c_load(self%place, trim(filename)//c_null_char, given)
  end subroutine load_module

  !> Run the module; `output` becomes its first result.
  subroutine forward_module(self, inputs, output, flags)
    class(torch_module), intent(in) :: self
    class(torch_tensor_wrap), intent(in) :: inputs
    class(torch_tensor), intent(inout) :: output
    !> Not used, there as here
    integer, intent(in), optional :: flags

    call run(self%place, inputs, output)
  end subroutine forward_module

  subroutine create_optimizer_sgd(self, learning_rate)
    class(torch_module), intent(inout) :: self
    real(real32), intent(in) :: learning_rate

    call c_optimizer(self%place, learning_rate)
  end subroutine create_optimizer_sgd

  subroutine train_module(self, inputs, target, loss)
    class(torch_module), intent(inout) :: self
    class(torch_tensor_wrap), intent(in) :: inputs
    class(torch_tensor), intent(in) :: target
    real(real32), intent(out) :: loss

    type(c_ptr), allocatable :: given(:)

    call list(inputs, given)
    call c_train(self%place, given, int(inputs%count, c_int64_t), target%place%tensor, loss)
  end subroutine train_module

  subroutine save_module(self, filename)
    class(torch_module), intent(in) :: self
    character(len=*), intent(in) :: filename

    call c_save(self%place, trim(filename)//c_null_char)
  end subroutine save_module

  impure elemental subroutine free_module(self)
    type(torch_module), intent(inout) :: self

    call c_module_free(self%place)
  end subroutine free_module

  subroutine load_script(self, filename)
    class(torch_pymodule), intent(inout) :: self
    character(len=*), intent(in) :: filename

    call c_load(self%place, trim(filename)//c_null_char, 0_c_int32_t)
  end subroutine load_script

  subroutine forward_script(self, inputs, output)
    class(torch_pymodule), intent(in) :: self
    class(torch_tensor_wrap), intent(in) :: inputs
    class(torch_tensor), intent(inout) :: output

    call run(self%place, inputs, output)
  end subroutine forward_script

  function train_script(self, inputs, target, loss) result(is_completed)
    class(torch_pymodule), intent(inout) :: self
    class(torch_tensor_wrap), intent(in) :: inputs
    class(torch_tensor), intent(in) :: target
    real(real32), intent(out) :: loss
    logical :: is_completed

    type(c_ptr), allocatable :: given(:)

    call list(inputs, given)
    is_completed = c_train_script(self%place, given, int(inputs%count, c_int64_t), &
      target%place%tensor, loss) == 1
  end function train_script

  subroutine save_script(self, filename)
    class(torch_pymodule), intent(in) :: self
    character(len=*), intent(in) :: filename

    call c_save(self%place, trim(filename)//c_null_char)
  end subroutine save_script

  impure elemental subroutine free_script(self)
    type(torch_pymodule), intent(inout) :: self

    call c_module_free(self%place)
  end subroutine free_script

  subroutine run(place, inputs, output)
    type(module_place), intent(in) :: place
    class(torch_tensor_wrap), intent(in) :: inputs
    class(torch_tensor), intent(inout) :: output

    type(c_ptr) :: none(1)

    if (inputs%count > 0) then
      call c_forward(place, inputs%tensors, int(inputs%count, c_int64_t), output%place)
    else
      call c_forward(place, none, 0_c_int64_t, output%place)
    end if
  end subroutine run

  !> The inputs, of which there may be none.
  subroutine list(inputs, tensors)
    class(torch_tensor_wrap), intent(in) :: inputs
    type(c_ptr), allocatable, intent(out) :: tensors(:)

    allocate (tensors(inputs%count))
    if (inputs%count > 0) tensors = inputs%tensors(:inputs%count)
  end subroutine list

end module torch_ftn
