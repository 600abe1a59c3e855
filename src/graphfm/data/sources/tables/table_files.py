"""The files of a request: what globs name, and what kind of table each file is."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from graphfm.errors import InputError

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
PACKED = (".gz", ".zst")


def find_files(patterns: Sequence[str]) -> list[str]:
    """The files that some globs name, in the order of their names; refuses addresses."""
    found: dict[str, str] = {}
    for pattern in patterns:
        if "://" in pattern or "\0" in pattern:
            raise InputError(f"{pattern!r} is an address; expected files on this machine")
        if "**" in pattern:
            raise InputError(f"{pattern!r} holds **; expected globs of one folder, such as e/*.csv")
        whole = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        if not whole:
            raise InputError(f"there is no file {pattern!r}; check the path")
        for path in whole:
            if not os.path.isfile(path):
                raise InputError(f"{path!r} is not a file; expected a table, or a glob of tables")
            if not os.path.getsize(path):
                raise InputError(f"{path!r} is empty; expected a table with names of columns")
            found.setdefault(os.path.realpath(path), path)
    return list(found)


def kind_of(files: Sequence[str]) -> str:
    """csv, json or parquet, by the endings of the files."""
    kinds = {_kind(Path(path)) for path in files}
    if len(kinds) > 1:
        raise InputError(f"the files are of several kinds ({', '.join(sorted(kinds))}); give one")
    return kinds.pop()


def _kind(path: Path) -> str:
    ending, packed = ending_of(path), path.suffix.lower() in PACKED
    kind = KINDS.get(ending)
    if kind is None or (kind == "parquet" and packed):
        raise InputError(
            f"{str(path)!r} ends with {path.suffix or 'nothing'!r}; expected .csv, .tsv, .jsonl or "
            ".parquet (and .gz or .zst after all but the last)"
        )
    return kind


def ending_of(path: Path) -> str:
    """The ending of a name, without that of its compression."""
    name = path.stem if path.suffix.lower() in PACKED else path.name
    return Path(name).suffix.lower()


def is_csv(path: str) -> bool:
    """True if a file, or a glob of files, is CSV by its ending."""
    return KINDS.get(ending_of(Path(path))) == "csv"
