"""Text of numbers, plain or compressed, read in pieces: what all text formats have in common."""

from __future__ import annotations

import codecs
import gzip
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from graphfm.data.graph.conversion import MOST_NODES
from graphfm.data.sources.raw.base import reading
from graphfm.errors import InputError
from graphfm.memory import available_memory

Array = np.ndarray[Any, Any]
BYTES_AT_ONCE = 1 << 22
LONGEST_LINE = 1 << 26  # METIS has the neighbours of a hub in one line
LETTERS = b"0123456789+-.eE \t\r\n"
MISSING = re.compile(rb",[ \t\r]*[,\n]|\n[ \t]*,")  # a comma without a number on one side
LAST_ID = (1 << 53) - 1  # larger whole numbers are not exact in float64
BYTES_PER_NUMBER = 64  # while a graph is built
FEW_NODES, NODES_PER_EDGE = 1 << 16, 100  # a file that declares more is a mistake
ADVICE = (
    "expected numbers in text (docs/formats.md); for other ids begin the file with a line of "
    "names, call it .csv or .tsv, and use 'graphfm import'"
)


class Numbers(NamedTuple):
    """The numbers of a piece of text, and the line of each."""

    values: Array  # float64
    lines: Array  # of the piece, from 0
    num_lines: int


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, compressed or not, and turn all errors of reading into errors of the user."""
    with reading(path, ADVICE):
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as text:
            if text.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:  # Windows writes it
                text.seek(0)
            yield cast("IO[bytes]", text)


def pieces(stream: IO[bytes], comments: bytes) -> Iterator[bytes]:
    """Yield the text in pieces of whole lines, without lines that begin with a comment's mark."""
    left: list[bytes] = []
    while piece := stream.read(BYTES_AT_ONCE):
        end = piece.rfind(b"\n") + 1
        if end:
            yield _uncommented(b"".join([*left, piece[:end]]), comments)
            left = []
        left.append(piece[end:])
        if sum(map(len, left)) > LONGEST_LINE:
            raise InputError(f"a line is longer than {LONGEST_LINE:,} bytes; {ADVICE}")
    if any(left):
        yield _uncommented(b"".join([*left, b"\n"]), comments)


def first_line(stream: IO[bytes], comments: bytes) -> bytes:
    """Return the first line that is neither empty nor a comment."""
    while line := stream.readline(LONGEST_LINE):
        if line.strip() and line.lstrip()[:1] not in comments:
            return line
    raise InputError(f"it ends before its first line of numbers; {ADVICE}")


def numbers(text: bytes) -> Numbers:
    """Read all numbers of a piece; refuse anything else."""
    if b"," in text:
        if MISSING.search(b"\n" + text):
            raise InputError(f"a number is missing beside a comma; {ADVICE}")
        text = text.replace(b",", b" ")
    if strange := text.translate(None, LETTERS):
        raise InputError(
            f"it holds {strange[:1].decode('ascii', 'backslashreplace')!r}, which is no part of a "
            f"number; {ADVICE}"
        )
    letters = np.frombuffer(text, np.uint8)
    inside = letters > ord(" ")
    starts = inside.copy()
    starts[1:] &= ~inside[:-1]
    ends = letters == ord("\n")
    lines = np.cumsum(ends)[starts]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # older numpy only warns about what it cannot read
        try:
            values = np.fromstring(text, np.float64, sep=" ") if len(lines) else np.zeros(0)
        except (ValueError, DeprecationWarning):
            raise InputError(f"it holds text that is not a number; {ADVICE}") from None
    if len(values) != len(lines):
        raise InputError(f"it holds text that is not a number; {ADVICE}")
    return Numbers(values, lines, int(ends.sum()))


def rows(stream: IO[bytes], comments: bytes, num_columns: int | None = None) -> Array:
    """Read all lines as [num_rows, num_columns]; each line that is not empty has equally many."""
    found: list[Array] = []
    total = 0
    for text in pieces(stream, comments):
        values, lines, _ = numbers(text)
        if not len(values):
            continue
        counts = np.bincount(lines)
        counts = counts[counts > 0]
        num_columns = int(counts[0]) if num_columns is None else num_columns
        if (counts != num_columns).any():
            wrong = int(counts[counts != num_columns][0])
            raise InputError(f"a line has {wrong} numbers; expected {num_columns} in every line")
        total += len(values)
        check_memory(total)
        found.append(values.reshape(-1, num_columns))
    return np.concatenate(found) if found else np.zeros((0, num_columns or 2))


def as_ids(values: Array, first: int, most: int = LAST_ID) -> Array:
    """Return node ids as int64, counted from 0; the file counts them from `first` to `most`."""
    wrong = values[(values < first) | (values > most) | (np.floor(values) != values)]
    if wrong.size:
        more = "; 'graphfm import' takes ids of any size" if most == LAST_ID else ""
        raise InputError(
            f"it holds node id {wrong[0]:.17g}; expected whole numbers {first} to {most}{more}"
        )
    return values.astype(np.int64) - first


def whole_numbers(line: bytes, least: int, most: int) -> list[int]:
    """Read the whole numbers of a header."""
    text = line.decode("ascii", "replace").split()
    if not least <= len(text) <= most or not all(t.isdecimal() and len(t) < 16 for t in text):
        shown = " ".join(text)[:40]
        count = f"{least}" if least == most else f"{least} to {most}"
        raise InputError(f"its header is {shown!r}; expected {count} whole numbers")
    return [int(number) for number in text]


def check_sizes(num_nodes: int, num_edges: int) -> None:
    """Refuse sizes that only a damaged file declares, before memory is taken for them."""
    if not 0 < num_nodes <= MOST_NODES:
        raise InputError(f"it declares {num_nodes:,} nodes; expected 1 to {MOST_NODES:,}")
    if num_nodes > FEW_NODES + NODES_PER_EDGE * num_edges:
        raise InputError(
            f"it declares {num_nodes:,} nodes for {num_edges:,} edges; expected at most "
            f"{NODES_PER_EDGE} per edge, because nearly all would be isolated"
        )
    check_memory(2 * num_edges)


def check_memory(count: int) -> None:
    """Refuse to read more numbers than there is memory for."""
    if count * BYTES_PER_NUMBER > (available := available_memory()):
        raise InputError(
            f"reading {count:,} numbers takes more memory than the {available:,} bytes available"
        )


def _uncommented(text: bytes, comments: bytes) -> bytes:
    if not any(bytes([mark]) in text for mark in comments):
        return text
    lines = text.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.lstrip().startswith(tuple(_each(comments))))


def _each(comments: bytes) -> list[bytes]:
    return [bytes([mark]) for mark in comments]
