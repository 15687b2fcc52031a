# SPDX-License-Identifier: MIT
"""Programs written to FTorch's API, one for each part of it."""

from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "ftorch"


def source(name):
    return (SOURCES / f"{name}.f90").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["tensors", "operators", "models", "training"])
def test_a_program(ftorch, ftorch_models, name):
    done = ftorch.run(name, source(name), ftorch_models)
    assert done.stdout.endswith("all\n")
    assert done.stderr == ""


def test_printing(ftorch, ftorch_models):
    tensors = ftorch.run("tensors", source("tensors"), ftorch_models).stdout
    assert "1  3  5\n 2  4  6" in tensors
    assert "9  3  5\n 2  4  6" in tensors
    models = ftorch.run("models", source("models"), ftorch_models).stdout
    assert models.count("weight: float32 (1,), requires gradients") == 2


def test_comparisons(ftorch):
    first, second, third = ftorch.run("comparisons", source("comparisons")).stdout.splitlines()
    assert first.startswith("PASSED :: [one] ")
    assert second.startswith("FAILED :: [said] ")
    assert third == "PASSED :: [name] message"


DEVICES = """program devices
  use ftorch
  implicit none
  real, target :: x(3) = [1., 2., 3.], y(3), g(3)
  type(torch_tensor) :: host, a, b, c, gradient
  type(torch_model) :: model
  type(torch_tensor) :: inputs(1), outputs(1)
  character(500) :: folder
  integer :: i
  call get_command_argument(1, folder)
  call torch_tensor_from_array(host, y, torch_kCPU)
  do i = 0, 1
    call torch_tensor_from_array(a, x, torch_kCUDA, device_index=i, requires_grad=.true.)
    call expect(a%get_device_type() == torch_kCUDA .and. a%get_device_index() == i, "device")
    b = a * a
    call torch_tensor_to(b, host)
    call expect(all(y == x * x), "values")
    call torch_tensor_sum_of(b)
    call torch_tensor_from_array(gradient, g, torch_kCPU)
    call torch_tensor_get_gradient(gradient, a)
    call expect(all(g == 2 * x), "gradient")
    call torch_model_load(model, trim(folder)//"/line.pt", torch_kCUDA, device_index=i)
    call torch_tensor_from_array(inputs(1), x, torch_kCUDA, device_index=i)
    call torch_tensor_from_array(outputs(1), y, torch_kCUDA, device_index=i)
    call torch_model_forward(model, inputs, outputs)
    call torch_tensor_to(outputs(1), host)
    call expect(all(y == 0), "model")
  end do
  call torch_tensor_from_array(c, x, torch_kCUDA)
  call expect(c%get_device_index() == 0, "default")
  print "(a)", "all"
contains
  subroutine torch_tensor_sum_of(t)
    type(torch_tensor), intent(in) :: t
    type(torch_tensor) :: total
    call torch_tensor_zeros(total, 1, [1_8], torch_kFloat32, torch_kCUDA, t%get_device_index())
    call torch_tensor_sum(total, t)
    call torch_tensor_backward(total)
  end subroutine torch_tensor_sum_of
end program devices
"""


def test_pretended_devices(ftorch, ftorch_models):
    done = ftorch.run("devices", DEVICES, ftorch_models, TORCHSPAN_PRETEND_CUDA="2")
    assert done.stdout == "all\n"


def test_memory_is_flat(ftorch):
    done = ftorch.run("memory", source("memory"), OMP_NUM_THREADS="1")
    # A thousandth of what 90,000 results of operators would take.
    assert int(done.stdout.removeprefix("grown by kB: ")) < 500
