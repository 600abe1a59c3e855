"""What DuckDB says of a table that it cannot read, on one line and in words that help a user."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Sequence
from itertools import islice
from typing import IO, cast

from graphfm.errors import counted

SHOWN_FILES = 3
SNIFFED_ROWS = 1 << 15  # DuckDB looks at fewer before it says that it cannot read a file
NOT_UTF8 = "it is not UTF-8; save it as UTF-8"
QUOTES = 'a quote is not closed, or text follows it; write " within a text as ""'
COLUMNS = "expected as many columns as names; mend the line"
CASES = (
    (r"(?i)not utf-8|invalid utf-?8|invalid unicode", NOT_UTF8),
    (r"unterminated quote", QUOTES),
    (
        r"magic bytes|too small to be a Parquet|Failed to read file|TProtocolException",
        "it is not a whole Parquet file; write it again, or name it by what it is, such as .csv",
    ),
    (
        r"(?i)gzip|zstd|frame descriptor|decompress",
        "it is damaged, or not compressed as its ending says; compress it again",
    ),
    (r"Malformed JSON", "it is not JSON lines; expected an object on each line; mend that line"),
)


def in_our_words(text: str, files: Sequence[str], separator: str) -> str:
    """What is wrong with which of the files that were read, and what to do."""
    named = [path for path in files if path in text] or list(files)
    more = ", ..." if len(named) > SHOWN_FILES else ""
    where = ", ".join(repr(path) for path in named[:SHOWN_FILES]) + more
    return f"{where or 'the tables'} cannot be read: {_problem(text, named, separator)}"


def _problem(text: str, files: Sequence[str], separator: str) -> str:
    line = re.search(r"(?:on Line: |in line )(\d+)", text)
    # DuckDB counts lines of JSON from 1 or from 2
    place = "" if line is None else f"{'near ' if 'JSON' in text else ''}line {line[1]}: "
    if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text):
        return f"{place}{_columns(int(found[2]), int(found[1]))}"
    if "sniffing file" in text:
        problems = (_first_problem(path, separator) for path in files)
        return next(filter(None, problems), f"its lines differ in columns or quotes; {COLUMNS}")
    for pattern, words in CASES:
        if re.search(pattern, plain(text)):
            return place + words
    return plain(text)


def plain(text: str) -> str:
    """DuckDB's words without the SQL, and without advice about options that only DuckDB has."""
    kept = re.split(r"Possible (?:fixes|[Ss]olution)|LINE \d+:|Candidate", text)[0]
    kept = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", " ".join(kept.split()))
    return kept[:400] or "DuckDB does not say why"


def _columns(found: int, expected: int) -> str:
    held, named = counted(found, "column", "columns"), counted(expected, "name", "names")
    return f"it has {held}, but the first line has {named}; {COLUMNS}"


def _first_problem(path: str, separator: str) -> str | None:
    """The first row of a CSV file that is wrong; None if it is not found."""
    line = 1
    try:
        with _opened(path) as stream:
            rows = csv.reader(stream, delimiter=separator, strict=True)
            names = next(rows)
            line = rows.line_num + 1
            for row in islice(rows, SNIFFED_ROWS):
                if row and len(row) != len(names):
                    return f"line {line}: {_columns(len(row), len(names))}"
                line = rows.line_num + 1
    except UnicodeDecodeError:
        return NOT_UTF8
    except csv.Error:
        return f"line {line}: {QUOTES}"
    except (OSError, EOFError, StopIteration):
        pass  # such as .zst, which Python cannot open
    return None


def _opened(path: str) -> IO[str]:
    if path.lower().endswith(".gz"):
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return open(path, encoding="utf-8-sig", newline="")
