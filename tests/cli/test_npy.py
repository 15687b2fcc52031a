# SPDX-License-Identifier: MIT
import errno
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchspan import ArgumentError
from torchspan.cli._npy import DTYPES, PartFile, map_input


def refusal(path):
    with pytest.raises(ArgumentError) as caught:
        map_input(path)
    message = str(caught.value)
    assert str(path) in message
    assert message.endswith(".")
    return message


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_that_a_model_takes_is_mapped(tmp_path, dtype):
    wanted = np.arange(12).reshape(4, 3).astype(dtype)
    np.save(tmp_path / "x.npy", wanted)
    found = map_input(tmp_path / "x.npy")
    assert isinstance(found, np.memmap)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (5, 0)])
def test_empty_and_single_arrays_are_mapped(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.ones(shape, np.float32))
    assert map_input(tmp_path / "x.npy").shape == shape


def test_fortran_order_and_foreign_byte_order_are_mapped(tmp_path):
    wanted = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "x.npy", np.asfortranarray(wanted).astype(">f8"))
    found = map_input(tmp_path / "x.npy")
    assert found.flags.f_contiguous
    np.testing.assert_array_equal(found, wanted)


def test_a_file_that_is_not_there(tmp_path):
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "x.npy")


def test_a_folder(tmp_path):
    assert "cannot be read: Is a directory" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not an array at all", b"\x93NUMPY"])
def test_a_file_of_another_kind(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    assert "is no .npy file" in refusal(tmp_path / "x.npy")


def test_an_archive_of_arrays(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones(3))
    assert "is an .npz archive; give a single array" in refusal(tmp_path / "x.npz")


def test_python_objects_are_refused_unread(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object))
    assert "holds Python objects" in refusal(tmp_path / "x.npy")


def test_a_file_that_was_cut_off(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((100, 4)))
    os.truncate(path, path.stat().st_size - 8)
    assert "shorter than its header says" in refusal(path)


@pytest.mark.parametrize("dtype", ["U3", "M8[s]", "V4", [("a", "f4")], np.longdouble])
def test_dtypes_that_no_model_takes(tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.zeros(3, dtype))
    assert "which no model takes; models take float16" in refusal(tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_part_file_becomes_what_numpy_would_have_saved(tmp_path, dtype):
    wanted = np.arange(42).reshape(7, 3, 2).astype(dtype)
    part = PartFile(tmp_path / "y.npy", dtype, wanted.shape)
    part.create()
    part.open()
    for rows in (range(4, 7), range(1), range(1, 4)):
        part.write(rows.start, wanted[rows.start : rows.stop])
    part.sync()
    part.close()
    part.finish()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["y.npy"]
    part.finish()


@pytest.mark.parametrize("shape", [(0, 5), (0,), (4, 0)])
def test_a_part_file_without_numbers(tmp_path, shape):
    part = PartFile(tmp_path / "y.npy", "float32", shape)
    part.create()
    part.open()
    part.write(0, np.zeros(shape, np.float32))
    part.close()
    part.finish()
    assert np.load(tmp_path / "y.npy").shape == shape


def test_a_part_file_has_its_full_length_from_the_start(tmp_path):
    part = PartFile(tmp_path / "y.npy", "float64", (1000, 3))
    part.create()
    assert np.load(part.part, mmap_mode="r").shape == (1000, 3)


def test_a_part_file_that_somebody_changed_is_not_written(tmp_path):
    part = PartFile(tmp_path / "y.npy", "float64", (10, 3))
    with part.part.open("wb") as file:
        np.save(file, np.zeros((10, 4)))
    with pytest.raises(ArgumentError, match=r"somebody changed it\. Start over with --restart"):
        part.open()
    part.part.unlink()
    with pytest.raises(ArgumentError, match="cannot be read"):
        part.open()


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_writes_that_the_system_cuts_short_are_gone_on_with(tmp_path_factory, data):
    wanted = np.random.default_rng(1).normal(size=(9, 5))
    part = PartFile(tmp_path_factory.mktemp("short") / "y.npy", "float64", wanted.shape)
    part.create()
    part.open()
    real, lengths = os.pwrite, st.integers(1, 400)

    def short(file, view, position):
        return real(file, view[: data.draw(lengths)], position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", short)
        part.write(2, wanted[2:])
        part.write(0, wanted[:2])
    part.close()
    part.finish()
    np.testing.assert_array_equal(np.load(part.path), wanted)


def test_a_full_disk_is_an_os_error(tmp_path):
    part = PartFile(tmp_path / "y.npy", "float64", (10, 3))
    part.create()
    part.open()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, part._file)
    os.close(full)
    with pytest.raises(OSError, match="No space left") as caught:
        part.write(0, np.zeros((1, 3)))
    assert caught.value.errno == errno.ENOSPC
    part.close()
