# SPDX-License-Identifier: MIT
"""What FTorch goes on from with a wrong answer, or ends at without a reason, stops with one here;
with TORCHSPAN_ON_ERROR=return the program goes on and has the reason."""

import pytest

# A block of statements, and what must be said of it.
CASES = {
    "larger": (
        "call torch_tensor_from_array(out(1), large, torch_kCPU)\n"
        "call torch_model_forward(pair, in, out(1:1))",
        "outputs[0]: target has shape (3, 3); the values have (2, 3)",
    ),
    "larger with gradients": (
        "call torch_tensor_from_array(out(1), large, torch_kCPU)\n"
        "call torch_model_forward(pair, in, out(1:1), requires_grad=.true.)",
        "target has shape (3, 3); the values have (2, 3)",
    ),
    "more outputs": (
        "call torch_model_forward(pair, in, many)",
        "3 outputs are wanted; this model gives 2",
    ),
    "another kind": (
        "call torch_tensor_from_array(out(1), wide, torch_kCPU)\n"
        "call torch_model_forward(pair, in, out(1:1))",
        "outputs[0]: target has dtype float64; the values are float32",
    ),
    "too few inputs": ("call torch_model_forward(pair, in(1:1), out)", "input"),
    "no model": ("call torch_model_forward(never, in, out)", "this model was never loaded"),
    "no model to save": ('call torch_model_save(never, "x.pt")', "this model was never loaded"),
    "no model to ask": ("ok = torch_model_is_training(never)", "this model was never loaded"),
    "no model to print": ("call never%print_parameters()", "this model was never loaded"),
    "no input": (
        "call torch_model_forward(pair, [in(1), unmade], out)",
        "this tensor was never made",
    ),
    "no output": ("call torch_model_forward(pair, in, lost)", "this tensor was never made"),
    "no tensor": ("many(1) = in(1) + unmade", "this tensor was never made"),
    "no tensor's rank": ("i = unmade%get_rank()", "this tensor was never made"),
    "no loss": ("call torch_loss_mse(unmade, in(1), in(2))", "this tensor was never made"),
    "no sum": ("call torch_tensor_sum(unmade, in(1))", "is NULL"),
    "shapes": ("many(1) = in(1) + square", "(3, 3)"),
    "assigned shape": ("many(2) = square", "target has shape (2, 3); the values have (3, 3)"),
    "cuda": ("call torch_tensor_from_array(out(1), x, torch_kCUDA)", "cuda:0"),
    "cuda model": (
        'call torch_model_load(never, trim(folder)//"/pair.pt", torch_kCUDA, 1)',
        "cuda:1",
    ),
    "device": ("call torch_tensor_from_array(out(1), x, 7)", "there is no device type 7"),
    "dtype": (
        "call torch_tensor_zeros(out(1), 1, [2_8], 9, torch_kCPU)",
        "there is no data type 9",
    ),
    "sizes": (
        "call torch_tensor_zeros(out(1), 2, [2_8], torch_kFloat32, torch_kCPU)",
        "ndims is 2, and tensor_shape has 1 sizes",
    ),
    "layout": (
        "call torch_tensor_from_array(out(1), x, [1, 1], torch_kCPU)",
        "layout(2) is 1; a layout of rank 2 holds each number from 1 to 2 once",
    ),
    "long layout": (
        "call torch_tensor_from_array(out(1), x, [1, 2, 3], torch_kCPU)",
        "layout has 3 numbers for a tensor of rank 2",
    ),
    "layout of a section": (
        "call torch_tensor_from_array(out(1), large(1:2, :), [1, 2], torch_kCPU)",
        "data_in is a section with gaps",
    ),
    "unallocated": (
        "call torch_tensor_from_array(out(1), unallocated, torch_kCPU)",
        "data_in is not allocated",
    ),
    "no number": ("call torch_tensor_from_array(out(1), words, torch_kCPU)", "tensors do not take"),
    "integers with gradients": (
        "call torch_tensor_from_array(out(1), whole, torch_kCPU, requires_grad=.true.)",
        "int32",
    ),
    "no file": ('call torch_model_load(never, "absent.pt", torch_kCPU)', "absent.pt"),
    "parameters": (
        "call torch_model_parameters(line, many)",
        "output_tensors has 3 tensors; the model has 2 parameters",
    ),
    "script with gradients": (
        'call torch_model_load(never, trim(folder)//"/twice.py", torch_kCPU, is_training=.true.)',
        "is a Python script, which is run without gradients",
    ),
    "script's parameters": (
        'call torch_model_load(never, trim(folder)//"/twice.py", torch_kCPU)\n'
        "call torch_model_parameters(never, many)",
        "a Python script's parameters stay in Python",
    ),
    "script's gradients": (
        'call torch_model_load(never, trim(folder)//"/twice.py", torch_kCPU)\n'
        "call torch_model_forward(never, in(1:1), out, requires_grad=.true.)",
        "a Python script gives no gradients",
    ),
    "no optimiser": ("call optim%step()", "this optimizer was never made"),
    "no optimiser to zero": ("call torch_optim_zero_grad(optim)", "this optimizer was never made"),
    "nothing to optimise": ("call torch_optim_SGD(optim, in)", "gradient"),
    "backward": ("call torch_tensor_backward(in(1))", "gradient"),
    "no gradient": ("call torch_tensor_get_gradient(out(1), in(1))", "gradient"),
    "deleted copy": (
        "copy%p = out(1)%p\ncall torch_delete(out(1))\ni = copy%get_rank()",
        "is no tensor in use: it was deleted, or never made",
    ),
}  # fmt: skip

HEAD = """program errors
  use, intrinsic :: iso_c_binding
  use ftorch
  implicit none
  interface
    function last() result(text) bind(c, name="tspan_last_error")
      import :: c_ptr
      type(c_ptr) :: text
    end function last
    function length(text) result(count) bind(c, name="strlen")
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: count
    end function length
  end interface
  real, target :: x(2, 3) = 1, y(2, 3) = 1, z(2, 3) = 1, large(3, 3) = 1
  double precision, target :: wide(2, 3) = 1
  integer, target :: whole(2) = 1
  character(3), target :: words(2) = "abc"
  real, pointer :: unallocated(:)
  type(torch_tensor) :: in(2), out(2), many(3), lost(1), unmade, square, copy
  type(torch_model) :: pair, line, never
  type(torch_optim) :: optim
  character(500) :: folder, name
  character(kind=c_char), pointer :: letters(:)
  logical :: ok
  integer :: i, k
  unallocated => null()
  call get_command_argument(1, folder)
  call torch_tensor_from_array(in(1), x, torch_kCPU)
  call torch_tensor_from_array(in(2), y, torch_kCPU)
  call torch_tensor_from_array(out(1), z, torch_kCPU)
  call torch_tensor_from_array(out(2), z, torch_kCPU)
  call torch_tensor_from_array(square, large, torch_kCPU)
  call torch_model_load(pair, trim(folder)//"/pair.pt", torch_kCPU)
  call torch_model_load(line, trim(folder)//"/line.pt", torch_kCPU)
  do i = 1, 3
    many(i) = out(1)
  end do
  print "(a)", "before"
"""
TAIL = """
    call c_f_pointer(last(), letters, [length(last())])
    print "(*(a))", letters
  end do
contains
end program errors
"""


def program():
    cases = "\n".join(f'case ("{name}")\n{block}' for name, (block, _) in CASES.items())
    loop = "do k = 2, command_argument_count()\ncall get_command_argument(k, name)\n"
    return f"{HEAD}{loop}select case (name)\n{cases}\nend select\n{TAIL}"


# All of them end in the same place, which each of these reaches in its own way.
STOPS = ("larger", "more outputs", "another kind", "no model", "no tensor", "shapes", "cuda",
         "layout", "no optimiser")  # fmt: skip


@pytest.mark.parametrize("name", STOPS)
def test_it_stops(ftorch, ftorch_models, name):
    done = ftorch.run("errors", program(), ftorch_models, name, status=1)
    assert done.stdout == "before\n"
    assert done.stderr.startswith("torchspan: ")
    assert CASES[name][1] in done.stderr


def test_it_goes_on(ftorch, ftorch_models):
    environ = {"TORCHSPAN_ON_ERROR": "return"}
    done = ftorch.run("errors", program(), ftorch_models, *CASES, **environ)
    assert done.stderr == ""
    said = done.stdout.split("before\n")[1].splitlines()
    for name, (_, words) in CASES.items():
        # The library has its own words for a handle that the front has refused already.
        found = any(words in line or ("never made" in words and "NULL" in line) for line in said)
        assert found, f"{name}: {said}"


def test_another_wish_is_none(ftorch, ftorch_models):
    environ = {"TORCHSPAN_ON_ERROR": "stop"}
    ftorch.run("errors", program(), ftorch_models, "shapes", status=1, **environ)
