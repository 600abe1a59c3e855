"""Hops in files, written chunk by chunk, so that a killed computation can be continued."""

from __future__ import annotations

import io
import json
import logging
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from graphfm.files import atomic_path, check_file, locked, read_json

FORMAT = 1  # increase it when the same key would give different rows
NUMBER = np.dtype("<f4")
PIECE = 1 << 24  # bytes read at a time to check a file
log = logging.getLogger("graphfm")


class Written(NamedTuple):
    """The number of rows in the file of one hop, and their CRC-32."""

    num_rows: int
    checksum: int


class HopFiles:
    """One table per hop, `KEY.1.npy`, `KEY.2.npy` and so on, beside `KEY.json`.

    The JSON holds the number of rows written of each hop and their checksum. It is replaced after
    the rows are in their file, so it never counts a row that is missing; rows that it does not
    count are written again.
    """

    def __init__(self, folder: Path, key: str, shape: tuple[int, int]) -> None:
        self.folder, self.key, self.shape = folder, key, shape
        self.header, self.row_bytes = _header(shape), shape[1] * NUMBER.itemsize
        self.written: list[Written] = []

    def look(self) -> None:
        """Find out which rows can be used; damaged ones are computed again."""
        self.written = self._recorded()
        for hop, written in enumerate(self.written, 1):
            try:
                self._check(hop, written)
            except (OSError, ValueError) as error:
                log.info("%s cannot be used (%s); computing it again", self.path(hop), error)
                del self.written[hop - 1 :]  # later hops are computed from this one
                break

    def num_rows(self, hop: int) -> int:
        """Number of rows of a hop that are written."""
        return self.written[hop - 1].num_rows if hop <= len(self.written) else 0

    def append(self, hop: int, rows: Tensor) -> None:
        """Write the next rows of a hop; all hops before it must be complete."""
        data = rows.cpu().contiguous().numpy().astype(NUMBER, copy=False)
        if hop > len(self.written):
            self.path(hop).unlink(missing_ok=True)  # a process that reads the old file keeps it
            self.path(hop).write_bytes(self.header)
            self.written.append(Written(0, 0))
        before = self.written[hop - 1]
        try:
            with self.path(hop).open("r+b") as stream:  # not mapped: a full disk raises, no crash
                stream.seek(len(self.header) + before.num_rows * self.row_bytes)
                stream.write(data.data)
        except OSError:
            self.path(hop).unlink(missing_ok=True)  # give the space back on a full disk
            raise
        checksum = zlib.crc32(data.data, before.checksum)
        self.written[hop - 1] = Written(before.num_rows + len(data), checksum)
        record = {"format": FORMAT, "key": self.key, "hops": self.written}
        with atomic_path(self._json) as unfinished:
            unfinished.write_text(json.dumps(record) + "\n")

    def table(self, hop: int) -> Tensor:
        """Memory-map a finished hop."""
        # Copy on write: torch requires writable memory, and the file must not change.
        rows = np.memmap(self.path(hop), NUMBER, "c", offset=len(self.header), shape=self.shape)
        return torch.from_numpy(rows)

    def path(self, hop: int) -> Path:
        return self.folder / f"{self.key}.{hop}.npy"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one process at a time write these hops; the others wait and then read them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        waiting = "another process computes the same hops; waiting for it"
        with locked(self.folder / f"{self.key}.lock", waiting):
            yield

    @property
    def _json(self) -> Path:
        return self.folder / f"{self.key}.json"

    def _recorded(self) -> list[Written]:
        """Read from the JSON which rows are written; a damaged JSON counts as none."""
        try:
            record = read_json(self._json)
            if (record["format"], record["key"]) != (FORMAT, self.key):
                raise ValueError("it describes other hops")
            written = [Written(int(rows), int(checksum)) for rows, checksum in record["hops"]]
            if any(hop.num_rows != self.shape[0] for hop in written[:-1]):
                raise ValueError("a hop before the last is incomplete")
            if any(not 0 <= hop.num_rows <= self.shape[0] for hop in written):
                raise ValueError("a hop has more rows than there are nodes")
        except FileNotFoundError:
            return []
        except Exception as error:  # a damaged file may raise anything; computing again repairs it
            log.info("%s cannot be used (%s); computing the hops again", self._json, error)
            return []
        return written

    def _check(self, hop: int, written: Written) -> None:
        """Refuse a file that does not start with the rows that were written."""
        check_file(self.path(hop))
        with self.path(hop).open("rb") as stream:
            if stream.read(len(self.header)) != self.header:
                raise ValueError("its header does not match")
            left, checksum = written.num_rows * self.row_bytes, 0
            while left > 0:
                if not (piece := stream.read(min(left, PIECE))):
                    raise ValueError("it is truncated")
                left, checksum = left - len(piece), zlib.crc32(piece, checksum)
        if checksum != written.checksum:
            raise ValueError("the checksum of its rows does not match")


def _header(shape: tuple[int, int]) -> bytes:
    """The header of an `.npy` file with a table of this shape."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": NUMBER.str, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()
