"""An array in a published `.npy` or `.npz` file, read in pieces."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.formats.npy import Header, check_archive, check_header, read_header
from graphfm.errors import InputError
from graphfm.files import check_room
from graphfm.memory import available_memory

Array = np.ndarray[Any, Any]
COPIED_AT_ONCE = 1 << 20
FEW_BYTES = 1 << 12


class RawArray:
    """An array on disk; the constructor checks type and shape against the size of the file."""

    def __init__(self, path: Path, name: str, kinds: str = "biuf") -> None:
        self.path = path
        with path.open("rb") as stream:
            self.header: Header = read_header(stream)
        check_header(name, self.header, path.stat().st_size, kinds)
        self.name, self.dtype = name, self.header.dtype
        self.shape = self.header.shape or (1,)  # a scalar counts as a list of one

    @classmethod
    def from_archive(
        cls, path: Path, key: str, scratch: Path, kinds: str = "biuf", *, small: bool = False
    ) -> RawArray:
        """Unpack an array of an `.npz` file to `scratch`, because an archive cannot seek."""
        unpacked = scratch / f"{path.stem}.{key}.npy"
        with zipfile.ZipFile(path) as archive:
            if f"{key}.npy" not in check_archive(archive):
                raise InputError(f"it does not hold {key}; remove it and download it again")
            info = archive.getinfo(f"{key}.npy")
            with archive.open(info) as packed:
                check_header(key, read_header(packed), info.file_size, kinds)
            if small and info.file_size > FEW_BYTES:
                raise InputError(
                    f"{key} has {info.file_size:,} bytes; expected at most {FEW_BYTES:,}"
                )
            check_room(scratch, info.file_size)
            with archive.open(info) as packed, unpacked.open("wb") as stream:
                shutil.copyfileobj(packed, stream, COPIED_AT_ONCE)
        return cls(unpacked, key, kinds)

    def whole(self) -> Array:
        """Read all of it; refuse it if it does not fit in memory."""
        if self.header.num_bytes > available_memory():
            raise InputError(
                f"{self.name} takes {self.header.num_bytes:,} bytes; less is available"
            )
        with self.path.open("rb") as stream:
            return self._read(stream, 0, self.shape[0])

    def rows(self, at_once: int) -> Iterator[Array]:
        """Yield the rows in pieces of `at_once`."""
        with self.path.open("rb") as stream:
            for start in range(0, self.shape[0], at_once):
                yield self._read(stream, start, min(start + at_once, self.shape[0]))

    def columns(self, at_once: int) -> Iterator[Array]:
        """Yield the columns of a matrix in pieces of `at_once`, in either memory order."""
        with self.path.open("rb") as stream:
            for start in range(0, self.shape[1], at_once):
                end = min(start + at_once, self.shape[1])
                if self.header.fortran_order:
                    yield (
                        self._line(stream, start * self.shape[0], end * self.shape[0])
                        .reshape(end - start, self.shape[0])
                        .T
                    )
                else:
                    yield self._strided(stream, self.shape[0], self.shape[1], start, end)

    def remove(self) -> None:
        """Delete the unpacked file."""
        self.path.unlink(missing_ok=True)

    def _read(self, stream: Any, start: int, end: int) -> Array:
        if self.header.fortran_order and len(self.shape) == 2:
            return self._strided(stream, self.shape[1], self.shape[0], start, end).T
        width = self.header.num_bytes // self.dtype.itemsize // max(self.shape[0], 1)
        rows: Array = self._line(stream, start * width, end * width)
        return rows.reshape(end - start, *self.shape[1:])

    def _strided(self, stream: Any, num_lines: int, length: int, start: int, end: int) -> Array:
        """Read the values from `start` to `end` of each of the consecutive lines."""
        lines = (
            self._line(stream, line * length + start, line * length + end)
            for line in range(num_lines)
        )
        return np.stack(list(lines)) if num_lines else np.zeros((0, end - start), self.dtype)

    def _line(self, stream: Any, start: int, end: int) -> Array:
        stream.seek(self.header.start + start * self.dtype.itemsize)
        line: Array = np.fromfile(stream, self.dtype, end - start)
        if len(line) != end - start:
            raise InputError(f"{self.name} is truncated; download the file again")
        return line
