"""Headers of `.npy` arrays, alone in a file or inside an `.npz` archive, checked before use."""

from __future__ import annotations

import math
import zipfile
from typing import IO, Any, NamedTuple

import numpy as np

from graphfm.errors import InputError

NUMBERS = "biuf"  # numpy's codes for booleans, integers and floats


class Header(NamedTuple):
    """The header of an array: shape, memory order, type, and the offset of the first value."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def num_bytes(self) -> int:
        """Size of the values, without the header."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Read a header; the stream is then at the first value."""
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise InputError(f"unknown npy format {version}; expected 1.0 or 2.0")
    shape, fortran_order, dtype = readers[version](stream)
    return Header(shape, fortran_order, dtype, stream.tell())


def check_header(name: str, header: Header, file_size: int, kinds: str = NUMBERS) -> None:
    """Refuse an array of another type than `kinds`, or one whose size does not match its file."""
    dtype, start = header.dtype, header.start
    if dtype.hasobject:
        raise InputError(f"{name} holds Python objects, which only pickle can read; save numbers")
    if dtype.kind not in kinds:
        expected = {"U": "text", "SU": "text", "iu": "whole numbers"}.get(kinds, "numbers")
        raise InputError(f"{name} holds {dtype} values; expected {expected}")
    if header.num_bytes != file_size - start:
        raise InputError(
            f"the header of {name} declares {dtype} {list(header.shape)}, which is "
            f"{header.num_bytes:,} bytes, but {file_size - start:,} bytes follow it"
        )


def check_archive(archive: zipfile.ZipFile) -> list[str]:
    """Return the names in an archive; refuse one whose directory contradicts its contents."""
    names = archive.namelist()
    if len(set(names)) != len(names):
        raise InputError("the archive holds two arrays of the same name")
    for info in archive.infolist():
        archive.open(info).close()  # compares the name with the one stored beside the data
        if info.comment:
            raise InputError("the archive's directory is damaged")  # a comment can hide entries
    return names
