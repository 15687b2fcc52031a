# SPDX-License-Identifier: MIT
"""Tensors from arrays of every kind and rank, with and without a layout, by generated programs."""

from itertools import permutations

import pytest

KINDS = {
    "int8": ("integer(int8)", "torch_kInt8"),
    "int16": ("integer(int16)", "torch_kInt16"),
    "int32": ("integer(int32)", "torch_kInt32"),
    "int64": ("integer(int64)", "torch_kInt64"),
    "real32": ("real(real32)", "torch_kFloat32"),
    "real64": ("real(real64)", "torch_kFloat64"),
}
SIZES = (2, 3, 1, 4, 2)


def strides(layout, shape):
    """Strides of a tensor whose indices run through the memory in the layout's order."""
    found, step = [0] * len(shape), 1
    for dim in layout:
        found[dim - 1] = step
        step *= shape[dim - 1]
    return found


def check(kind, rank, layout):
    declaration, constant = KINDS[kind]
    shape = SIZES[:rank]
    colons = ",".join(":" * rank)
    order = f"[{','.join(map(str, layout))}], " if layout else ""
    steps = strides(layout or range(1, rank + 1), shape)
    count = 1
    for size in shape:
        count *= size
    width = "int8" if kind == "int8" else "int32"
    values = f"[(int(i, {width}), i = 1, {count})]"
    return f"""
    block
      {declaration}, allocatable, target :: x({colons}), y({colons})
      type(torch_tensor) :: a, b
      x = reshape({values}, {list(shape)})
      allocate (y, mold=x)
      y = 0
      call torch_tensor_from_array(a, x, {order}torch_kCPU)
      call torch_tensor_from_array(b, y, {order}torch_kCPU, device_index=-1, requires_grad=.false.)
      call expect(a%get_rank() == {rank}, "{kind} {rank} rank")
      call expect(all(a%get_shape() == {list(shape)}), "{kind} {rank} shape")
      call expect(all(a%get_stride() == {steps}), "{kind} {rank} {layout} strides")
      call expect(a%get_dtype() == {constant}, "{kind} {rank} dtype")
      call expect(a%get_device_type() == torch_kCPU, "{kind} {rank} device")
      b = a + a
      call expect(all(y == 2 * x), "{kind} {rank} {layout} values")
      call torch_delete(a)
    end block"""


@pytest.mark.parametrize("kind", KINDS)
def test_every_rank_and_layout(ftorch, kind):
    blocks = []
    for rank in range(1, 6):
        layouts = [None, tuple(range(1, rank + 1)), tuple(range(rank, 0, -1))]
        if rank == 3 and kind == "real64":
            layouts += list(permutations((1, 2, 3)))
        blocks += [check(kind, rank, layout) for layout in layouts]
    text = f"""program arrays
  use, intrinsic :: iso_fortran_env
  use ftorch
  implicit none
  integer :: i
{"".join(blocks)}
  print "(a)", "all"
contains
end program arrays
"""
    assert ftorch.run(f"arrays_{kind}", text).stdout == "all\n"
