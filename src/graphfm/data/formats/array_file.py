"""One array in an `.npy` file that is written in pieces and memory-mapped when it is read."""

from __future__ import annotations

import io
import math
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from graphfm.data.formats.npy import read_header
from graphfm.errors import InputError
from graphfm.files import check_file

Array = np.ndarray[Any, Any]


class ArrayFile:
    """Appends rows to an `.npy` file; the header gets the number of rows when the file closes."""

    def __init__(self, path: Path, dtype: str, row_shape: tuple[int, ...] = ()) -> None:
        self.path, self.dtype, self.row_shape = path, np.dtype(dtype), row_shape
        self.num_rows = 0

    def __enter__(self) -> Self:
        self._stream = self.path.open("wb")
        self._stream.write(self._header())
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.seek(0)
        self._stream.write(self._header())
        self._stream.close()

    def append(self, rows: Array) -> None:
        """Write rows after those already there."""
        # Written, not mapped: on a full disk a write raises an error, a mapped page crashes.
        assert rows.shape[1:] == self.row_shape
        self._stream.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.num_rows += len(rows)

    def _header(self) -> bytes:
        stream = io.BytesIO()
        shape = (self.num_rows, *self.row_shape)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        assert len(stream.getvalue()) == 128  # numpy pads it, so the values never have to move
        return stream.getvalue()


def write_array(path: Path, dtype: str, array: Array) -> None:
    """Write a whole array at once."""
    with ArrayFile(path, dtype, array.shape[1:]) as file:
        file.append(array)


def map_array(path: Path, dtype: str, shape: tuple[int, ...]) -> Array:
    """Memory-map the array in a file; refuse one of another type, shape or size."""
    try:
        check_file(path)
        with path.open("rb") as stream:
            header = read_header(stream)
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except Exception as error:  # numpy raises many kinds of errors for a damaged header
        raise InputError(f"{path} is damaged: {error}") from None
    if (header.dtype, header.shape, header.fortran_order) != (np.dtype(dtype), shape, False):
        raise InputError(
            f"{path} holds {header.dtype} {list(header.shape)}; expected {dtype} {list(shape)}"
        )
    size = path.stat().st_size
    if size != header.start + header.num_bytes:
        raise InputError(f"{path} has {size:,} bytes; expected {header.start + header.num_bytes:,}")
    if math.prod(shape) == 0:
        return np.zeros(shape, dtype)  # an empty file cannot be mapped
    # Copy on write: torch requires writable memory, and the file must not change.
    mapped: Array = np.memmap(path, dtype, "c", offset=header.start, shape=shape)
    return mapped
