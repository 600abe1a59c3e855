"""Tables of numbers in compressed text, as OGB publishes them: `.csv.gz` without a header."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.errors import InputError

Array = np.ndarray[Any, Any]
BYTES_AT_ONCE = 1 << 22
LONGEST_LINE = 1 << 20
MOST_GRAPHS = 1 << 10  # a longer file is not a list of graphs
COMMA, END = ord(","), ord("\n")
LETTERS = {"i": b"0123456789-,\n", "f": b"0123456789+-.eEnaN,\n"}


class NumberTable:
    """The numbers of one file as int64 or float64, read in pieces."""

    def __init__(self, path: Path, dtype: str = "int64") -> None:
        self.path, self.dtype = path, np.dtype(dtype)

    def rows(self, num_columns: int, expected_rows: int) -> Iterator[Array]:
        """Yield pieces of [num_rows, num_columns]; refuse any other number of rows or columns."""
        num_rows = 0
        for text in self._pieces():
            piece = self._parse(text, num_columns)
            num_rows += len(piece)
            if num_rows > expected_rows:
                raise InputError(f"it has too many rows; expected {expected_rows:,}")
            yield piece
        if num_rows != expected_rows:
            raise InputError(f"it has {num_rows:,} rows; expected {expected_rows:,}")

    def column(self, most_rows: int) -> Array:
        """Return a column of at most `most_rows` rows."""
        pieces, num_rows = [np.zeros(0, self.dtype)], 0
        for text in self._pieces():
            pieces.append(self._parse(text, 1).reshape(-1))
            num_rows += len(pieces[-1])
            if num_rows > most_rows:
                raise InputError(f"it has too many rows; expected at most {most_rows:,}")
        return np.concatenate(pieces)

    def number(self) -> int:
        """Return the only number of a file."""
        values = self.column(most_rows=MOST_GRAPHS)
        if len(values) != 1:
            raise InputError(f"it has {len(values)} rows; expected one, because there is one graph")
        return int(values[0])

    def num_columns(self) -> int:
        """Number of columns of the first row."""
        with gzip.open(self.path) as stream:
            line = stream.readline(LONGEST_LINE)
        if not line.strip():
            raise InputError("it is empty")
        return line.count(b",") + 1

    def _pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces that end at the end of a line."""
        if not self.path.stat().st_size:
            raise InputError("it is empty")  # gzip would take it for a table without rows
        left = b""
        with gzip.open(self.path) as stream:
            while piece := stream.read(BYTES_AT_ONCE):
                end = piece.rfind(b"\n") + 1
                if not end:
                    left += piece
                    if len(left) > LONGEST_LINE:
                        raise InputError("a line is too long; expected numbers separated by commas")
                    continue
                yield left + piece[:end]
                left = piece[end:]
        if left:
            yield left + b"\n"

    def _parse(self, text: bytes, num_columns: int) -> Array:
        text = text.replace(b"\r\n", b"\n")  # as Windows ends lines
        if strange := text.translate(None, LETTERS[self.dtype.kind]):
            raise InputError(f"it holds {strange[:1]!r}; expected numbers separated by commas")
        letters = np.frombuffer(text, np.uint8)
        marks = letters[(letters == COMMA) | (letters == END)]
        pattern = np.full(num_columns, COMMA, np.uint8)
        pattern[-1] = END
        if len(marks) % num_columns or (marks.reshape(-1, num_columns) != pattern).any():
            raise InputError(f"a row has another number of columns; expected {num_columns}")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # older numpy only warns about what it cannot read
            try:
                numbers = np.fromstring(text.replace(b"\n", b","), self.dtype, sep=",")
            except (ValueError, DeprecationWarning):
                raise InputError("it holds text that is not a number; expected numbers") from None
        if len(numbers) != len(marks):
            raise InputError("a field is empty; expected a number in each")
        return numbers.reshape(-1, num_columns)
