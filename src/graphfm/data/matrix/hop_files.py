"""Hops in files, written chunk by chunk, so that a computation can be killed and go on."""

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

FORMAT = 1  # raise it when the same key would give other rows
NUMBER = np.dtype("<f4")
PIECE = 1 << 24  # bytes read at a time where a file is checked
log = logging.getLogger("graphfm")


class Written(NamedTuple):
    """Of one hop, what is in its file: the first so many rows, and their CRC-32."""

    num_rows: int
    checksum: int


class HopFiles:
    """One table per hop, `KEY.1.npy`, `KEY.2.npy` and so on, beside `KEY.json`.

    The JSON says how many rows of each hop are written, and their checksum. It is replaced after
    the rows went to their file: what it names is there, and what it does not name is written anew.
    """

    def __init__(self, folder: Path, key: str, shape: tuple[int, int]) -> None:
        self.folder, self.key, self.shape = folder, key, shape
        self.header, self.row_bytes = _header(shape), shape[1] * NUMBER.itemsize
        self.written: list[Written] = []

    def look(self) -> None:
        """Find out what is there; what is damaged counts as not there."""
        self.written = self._named()
        for hop, written in enumerate(self.written, 1):
            try:
                self._check(hop, written)
            except (OSError, ValueError) as error:
                log.info("%s cannot be used (%s): computing it again", self.path(hop), error)
                del self.written[hop - 1 :]  # later hops follow from this one
                break

    def num_rows(self, hop: int) -> int:
        """How many rows of a hop are written."""
        return self.written[hop - 1].num_rows if hop <= len(self.written) else 0

    def append(self, hop: int, rows: Tensor) -> None:
        """Write the next rows of a hop; the hops before it are whole."""
        data = rows.cpu().contiguous().numpy().astype(NUMBER, copy=False)
        if hop > len(self.written):
            self.path(hop).unlink(missing_ok=True)  # whoever reads an old one keeps it
            self.path(hop).write_bytes(self.header)
            self.written.append(Written(0, 0))
        before = self.written[hop - 1]
        try:
            with self.path(hop).open("r+b") as stream:  # not mapped: a full disk is no crash
                stream.seek(len(self.header) + before.num_rows * self.row_bytes)
                stream.write(data.data)
        except OSError:
            self.path(hop).unlink(missing_ok=True)  # what does not fit leaves room for others
            raise
        checksum = zlib.crc32(data.data, before.checksum)
        self.written[hop - 1] = Written(before.num_rows + len(data), checksum)
        record = {"format": FORMAT, "key": self.key, "hops": self.written}
        with atomic_path(self._json) as unfinished:
            unfinished.write_text(json.dumps(record) + "\n")

    def table(self, hop: int) -> Tensor:
        """A finished hop, read from its file where it is needed."""
        # Copy on write: torch wants memory it may write to, and the file stays as it is.
        rows = np.memmap(self.path(hop), NUMBER, "c", offset=len(self.header), shape=self.shape)
        return torch.from_numpy(rows)

    def path(self, hop: int) -> Path:
        return self.folder / f"{self.key}.{hop}.npy"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time writes these hops; the others wait, and then find them there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        waiting = "another process computes the same hops: waiting for it"
        with locked(self.folder / f"{self.key}.lock", waiting):
            yield

    @property
    def _json(self) -> Path:
        return self.folder / f"{self.key}.json"

    def _named(self) -> list[Written]:
        """What the JSON says is there."""
        try:
            record = read_json(self._json)
            if (record["format"], record["key"]) != (FORMAT, self.key):
                raise ValueError("it is of other hops")
            written = [Written(int(rows), int(checksum)) for rows, checksum in record["hops"]]
            if any(hop.num_rows != self.shape[0] for hop in written[:-1]):
                raise ValueError("a hop before the last is not whole")
            if any(not 0 <= hop.num_rows <= self.shape[0] for hop in written):
                raise ValueError("a hop has more rows than there are nodes")
        except FileNotFoundError:
            return []
        except Exception as error:  # whatever a damaged file brings about, a new one mends
            log.info("%s cannot be used (%s): computing the hops again", self._json, error)
            return []
        return written

    def _check(self, hop: int, written: Written) -> None:
        """Refuse a file that does not begin with the rows that were written."""
        check_file(self.path(hop))
        with self.path(hop).open("rb") as stream:
            if stream.read(len(self.header)) != self.header:
                raise ValueError("it holds something else")
            left, checksum = written.num_rows * self.row_bytes, 0
            while left > 0:
                if not (piece := stream.read(min(left, PIECE))):
                    raise ValueError("it is cut short")
                left, checksum = left - len(piece), zlib.crc32(piece, checksum)
        if checksum != written.checksum:
            raise ValueError("its rows are not those that were written")


def _header(shape: tuple[int, int]) -> bytes:
    """The beginning of an `.npy` file with a table of this shape."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": NUMBER.str, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()
