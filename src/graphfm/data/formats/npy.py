"""What the arrays of `.npy` and `.npz` files say of themselves, held against what is there."""

from __future__ import annotations

import math
import zipfile
from typing import IO, Any, NamedTuple

import numpy as np

from graphfm.errors import InputError


class Header(NamedTuple):
    """The beginning of an array: its shape, its order and its type, and where its numbers start."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise InputError(f"npy format {version} is not known; expected 1.0 or 2.0")
    shape, fortran_order, dtype = readers[version](stream)
    return Header(shape, fortran_order, dtype, stream.tell())


def check_header(name: str, header: Header, file_size: int, kinds: str = "biuf") -> None:
    """Refuse an array of another kind, or of another size than its file has."""
    dtype, start = header.dtype, header.start
    if dtype.hasobject:
        raise InputError(f"{name} holds Python objects, which only pickle can read; save numbers")
    if dtype.kind not in kinds:
        expected = "text" if kinds in ("U", "SU") else "numbers"
        raise InputError(f"{name} holds {dtype} values; expected {expected}")
    if header.num_bytes != file_size - start:
        raise InputError(
            f"{name} says {dtype} {list(header.shape)}, {header.num_bytes:,} bytes, "
            f"but has {file_size - start:,}"
        )


def check_archive(archive: zipfile.ZipFile) -> list[str]:
    """The names in an archive; refuses one whose directory is not to be believed."""
    names = archive.namelist()
    if len(set(names)) != len(names):
        raise InputError("it holds two arrays of one name")
    for info in archive.infolist():
        archive.open(info).close()  # refuses a name that differs from the one beside the data
        if info.comment:
            raise InputError("its directory is damaged")  # the comment may be further entries
    return names
