"""Write a safetensors file piece by piece, so that a large tensor is never in memory twice.

The file is what `safetensors.torch.save_file` writes: the length of a JSON header, the header, and
the numbers of all tensors one after the other. `safetensors.safe_open` reads it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

PIECE = 1 << 24  # bytes that are copied to the host and written at a time
NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
    torch.uint8: "U8", torch.bool: "BOOL", torch.uint16: "U16", torch.uint32: "U32",
    torch.uint64: "U64", torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
}  # fmt: skip


class Pieces(Protocol):
    """Rows that are not one tensor in memory, but can be read one piece after the other."""

    shape: Sequence[int]
    dtype: torch.dtype

    def pieces(self) -> Iterator[Tensor]:
        """Yield all rows, in order."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor | Pieces]) -> str:
    """Write a safetensors file; returns the SHA-256 of what was written.

    Tensors may share memory, be on any device and have any strides. An error leaves part of a
    file, so write to a temporary path (`files.atomic_path`).
    """
    # Wide numbers come first, so that each tensor begins at a multiple of its item size.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header, end = dict[str, object](), 0
    for name in names:
        kept = tensors[name]
        start, end = end, end + math.prod(kept.shape) * kept.dtype.itemsize
        kind, shape = NAMES[kept.dtype], list(kept.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with path.open("wb") as stream:
        for first in (len(text).to_bytes(8, "little"), text):
            stream.write(first)
            digest.update(first)
        for name in names:
            for piece in _pieces(tensors[name]):
                whole = piece.cpu().contiguous().as_strided((piece.numel(),), (1,))
                numbers = whole.view(torch.uint8).numpy().data
                stream.write(numbers)
                digest.update(numbers)
    return digest.hexdigest()


@torch.no_grad()
def _pieces(kept: Tensor | Pieces) -> Iterator[Tensor]:
    """Cut what is kept into parts of about PIECE bytes; nothing of no numbers."""
    for rows in kept.pieces() if not isinstance(kept, Tensor) else [kept.detach()]:
        if rows.numel() == 0:
            continue
        if rows.dim() == 0:
            yield rows
            continue
        bytes_per_row = rows.nbytes // rows.size(0)
        yield from torch.split(rows, max(PIECE // max(bytes_per_row, 1), 1))
