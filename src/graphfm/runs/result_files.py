"""Writes rows of nodes as CSV, Parquet or npy, one piece at a time; the file appears when whole."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from graphfm.data.sources.tables.database import Database
from graphfm.data.sources.tables.export import write_table
from graphfm.errors import InputError
from graphfm.files import atomic_path

CSV, PACKED_CSV, PARQUET, NPY = ".csv", ".csv.gz", ".parquet", ".npy"
ENDINGS = (CSV, PACKED_CSV, PARQUET, NPY)
VALUES_AT_ONCE = 1 << 20
MEMORY = 1 << 30  # of DuckDB
TO_QUOTE = re.compile(r'[",\r\n]')
Array = np.ndarray[Any, Any]
Columns = dict[str, Array]  # of equal length: whole numbers, float32, or texts (None if unknown)


def ending_of(path: Path) -> str:
    """The kind of file that a path names."""
    for ending in ENDINGS:
        if path.name.lower().endswith(ending) and len(path.name) > len(ending):
            return ending
    listed = ", ".join(ENDINGS[:-1])
    raise InputError(f"cannot write {path}: expected a file that ends in {listed} or {NPY}")


def write_results(
    out: Path,
    rows: Iterable[Tensor],
    num_rows: int,
    columns: Callable[[Tensor, int], Columns],
    number_format: str,
) -> None:
    """Write `num_rows` rows, which come in parts.

    `columns(piece, start)` gives the columns of a table for a piece of the rows that begins with
    row `start`. An npy file holds the rows as they are.
    """
    ending, pieces = ending_of(out), _pieces(rows)
    try:
        with atomic_path(out) as path:
            if ending == NPY:
                _write_npy(path, pieces, num_rows)
                return
            table = (columns(piece, start) for start, piece in pieces)
            if ending == PARQUET:
                _write_parquet(path, table)
            else:
                _write_csv(path, table, number_format, packed=ending == PACKED_CSV)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from None


def _pieces(rows: Iterable[Tensor]) -> Iterator[tuple[int, Tensor]]:
    """Cut the parts so small that their values may be Python objects for a while."""
    start = 0
    for part in rows:
        for piece in torch.split(part, max(1, VALUES_AT_ONCE // max(part.size(1), 1))):
            yield start, piece.float().cpu()
            start += piece.size(0)


def _write_npy(path: Path, pieces: Iterable[tuple[int, Tensor]], num_rows: int) -> None:
    """Write from beginning to end: where a mapped file meets a full disk, the process is killed."""
    with path.open("wb") as stream:
        for start, piece in pieces:
            if start == 0:
                shape = (num_rows, piece.size(1))
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
            stream.write(piece.numpy().astype("<f4", copy=False).tobytes())


def _write_parquet(path: Path, table: Iterable[Columns]) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.", dir=path.parent) as scratch:
        db = Database(Path(scratch), [str(path)], MEMORY)
        try:
            write_table(db, "results", iter(table), path, "parquet")
        finally:
            db.close()


def _write_csv(path: Path, table: Iterable[Columns], number_format: str, *, packed: bool) -> None:
    with path.open("wb") as stream:
        if not packed:
            _write_lines(stream, table, number_format)
            return
        # Neither the temporary name nor the time is to be in the file.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as inner:
            _write_lines(inner, table, number_format)


def _write_lines(
    stream: IO[bytes] | gzip.GzipFile, table: Iterable[Columns], number_format: str
) -> None:
    """Write lines as the csv module does, which takes twice as long for many numbers."""
    for number, columns in enumerate(table):
        if number == 0:
            stream.write((",".join(map(_quoted, columns)) + "\r\n").encode())
        cells, formats = [], []
        for values in columns.values():
            is_number = values.dtype != object
            if is_number and values.dtype.kind == "f" and np.isnan(values).any():
                texts = [number_format % value for value in values.tolist()]
                cells.append(["" if text == "nan" else text for text in texts])
                formats.append("%s")
            elif is_number:
                cells.append(values.tolist())
                formats.append("%d" if values.dtype.kind == "i" else number_format)
            else:
                cells.append([_quoted(text) for text in values])
                formats.append("%s")
        line = ",".join(formats) + "\r\n"
        stream.write("".join([line % row for row in zip(*cells, strict=True)]).encode())


def _quoted(text: str | None) -> str:
    """A text as CSV writes it; nothing if it is not known."""
    if text is None:
        return ""
    return '"' + text.replace('"', '""') + '"' if TO_QUOTE.search(text) else text
