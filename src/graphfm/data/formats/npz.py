"""`.npz` archives: read without trust, and written whole or not at all.

`numpy.load` believes what a file says of itself. Here every header is read first, and no memory is
allocated until types, shapes and sizes agree with each other, with the archive's directory and
with the memory of the machine.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphfm.data.formats.npy import NUMBERS, check_archive, check_header, read_header
from graphfm.errors import InputError
from graphfm.files import atomic_path
from graphfm.memory import available_memory

Array = np.ndarray[Any, Any]


class ArrayRule(NamedTuple):
    """What is expected of one array of an archive."""

    required: bool = False
    kinds: str = NUMBERS  # numpy's codes of the types that are accepted
    working_bytes: int = 8  # per element, needed beside the array to process it


class ReadArrays(NamedTuple):
    """The arrays that were asked for and are there, and the names of everything else."""

    arrays: dict[str, Array]
    unused: list[str]


def read_arrays(path: Path, rules: Mapping[str, ArrayRule]) -> ReadArrays:
    """Read the arrays named in `rules`; every header is checked before any array is read."""
    try:
        if not path.is_file():
            problem = "it is not a file" if path.exists() else "no such file"
            raise InputError(f"{problem}; give the path of an .npz file (docs/npz.md describes it)")
        with warnings.catch_warnings(), zipfile.ZipFile(path) as archive:
            warnings.simplefilter("ignore")  # numpy warns about headers of Python 2
            names = check_archive(archive)
            keys = _known_keys(names, rules)
            needed = sum(_check_member(archive, key, rules[key]) for key in keys)
            if needed > (available := available_memory()):
                raise InputError(
                    f"reading it takes {needed:,} bytes of memory, but {available:,} are available"
                )
            arrays = {key: _read_member(archive, key) for key in keys}
            unused = [name.removesuffix(".npy") for name in names]
            return ReadArrays(arrays, [name for name in unused if name not in arrays])
    except InputError:
        raise
    except PermissionError:
        raise InputError("permission denied; make it readable (chmod) or copy it") from None
    except Exception as error:  # zip, zlib, lzma and numpy each raise errors of their own
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(
            f"damaged, or not an .npz file ({reason}); write it again with Graph.save"
        ) from None


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write a compressed archive; a failure leaves the old file as it was."""
    with atomic_path(path) as unfinished, unfinished.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _known_keys(names: list[str], rules: Mapping[str, ArrayRule]) -> list[str]:
    """The keys of `rules` that the archive holds; refuses an archive without a required one."""
    found = [key for key in rules if f"{key}.npy" in names]
    required = [key for key, rule in rules.items() if rule.required]
    if missing := [key for key in required if key not in found]:
        optional = ", ".join(key for key in rules if key not in required)
        raise InputError(
            f"it has no {' and no '.join(missing)} (it holds {', '.join(names[:8]) or 'nothing'}); "
            f"expected {', '.join(required)} and optionally {optional}"
        )
    return found


def _check_member(archive: zipfile.ZipFile, key: str, rule: ArrayRule) -> int:
    """Refuse a header that does not fit its archive entry; return the bytes it takes to use it."""
    info = archive.getinfo(f"{key}.npy")
    with archive.open(info) as stream:
        header = read_header(stream)
    check_header(key, header, info.file_size, rule.kinds)
    return header.num_bytes + math.prod(header.shape) * rule.working_bytes


def _read_member(archive: zipfile.ZipFile, key: str) -> Array:
    with archive.open(f"{key}.npy") as stream:
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array
