# SPDX-License-Identifier: MIT
"""Arrays in ``.npy`` files that are larger than memory.

Inputs are memory-mapped, so that any order and byte order can be read in blocks. Outputs are
written with ``pwrite``, not through a map: a full disk is then an error that can be explained, not
a signal that ends the process, and ranks on several machines never write the same page.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from torchspan._errors import ArgumentError

__all__ = ["Array", "PartFile", "map_input"]

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)


def map_input(path: Path) -> Array:
    """Open an ``.npy`` file without reading it.

    Args:
        path: The file.

    Returns:
        The array, mapped into memory.

    Raises:
        ArgumentError: There is no such file, or it is no ``.npy`` file of numbers, or is cut short.
    """
    try:
        array: Array = npy.open_memmap(path, mode="r")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ArgumentError(_explain(path, error)) from error
    if array.dtype.name not in DTYPES:
        raise ArgumentError(
            f"{path} holds {array.dtype}, which no model takes; models take {', '.join(DTYPES)}. "
            "Convert it with numpy's astype."
        )
    return array


class PartFile:
    """An ``.npy`` output while it is being written, beside its final name.

    Attributes:
        path: The final name.
        part: The name until it is finished.
        dtype: Its dtype, by name.
        shape: Its shape.
    """

    def __init__(self, path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self.dtype = np.dtype(dtype)
        self.shape = shape
        self._row_bytes = self.dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        self._file = -1
        self._offset = 0

    @property
    def nbytes(self) -> int:
        """How many bytes its array has."""
        return self._row_bytes * self.shape[0]

    def create(self) -> None:
        """Write the header and set the file to its full length."""
        try:
            with self.part.open("wb") as file:
                npy.write_array_header_2_0(
                    file,
                    {
                        "descr": npy.dtype_to_descr(self.dtype),
                        "fortran_order": False,
                        "shape": self.shape,
                    },
                )
                file.truncate(file.tell() + self.nbytes)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.part)) from error

    def open(self) -> None:
        """Open the file that ``create`` made, maybe in another process, to write rows into it.

        Raises:
            ArgumentError: It is not what ``create`` made.
        """
        found = map_input(self.part)
        if (found.dtype, found.shape) != (self.dtype, self.shape):
            raise ArgumentError(
                f"{self.part} holds {found.dtype} {found.shape} and not {self.dtype} {self.shape}, "
                "as this run wants; somebody changed it. Start over with --restart."
            )
        self._offset = self.part.stat().st_size - self.nbytes
        self._file = os.open(self.part, os.O_WRONLY | os.O_CLOEXEC)

    def write(self, start: int, rows: Array) -> None:
        """Write rows from row ``start`` on."""
        view = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        position = self._offset + start * self._row_bytes
        while view:
            written = os.pwrite(self._file, view, position)
            view, position = view[written:], position + written

    def sync(self) -> None:
        """Return once what was written is on the disk."""
        _sync_data(self._file)

    def close(self) -> None:
        """Close the file; it may be opened again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def finish(self) -> None:
        """Give the file its final name; nothing happens where it has it already."""
        if self.part.exists():
            self.part.replace(self.path)
            _sync_folder(self.path.parent)


# macOS has no fdatasync.
_sync_data = getattr(os, "fdatasync", os.fsync)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _explain(path: Path, error: ValueError) -> str:
    if zipfile.is_zipfile(path):
        return f"{path} is an .npz archive; give a single array, saved with numpy.save."
    text = str(error)
    if "Python objects" in text:
        return f"{path} holds Python objects, not numbers; save an array of numbers."
    if "mmap length" in text:
        return f"{path} is shorter than its header says: it was cut off. Copy or write it again."
    return f"{path} is no .npy file ({text.rstrip('.')}). Write it with numpy.save."
