"""The folder of a comparison: what was asked, and every cell that ended."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from graphfm.errors import InputError
from graphfm.experiments.cell import Cell, key_of
from graphfm.experiments.outcome import Outcome
from graphfm.files import atomic_path, check_file, make_folder, read_json

Key = Callable[[Mapping[str, Any]], str]  # of a cell, from its run
SETTINGS, CELLS = "comparison.json", "cells.jsonl"


class Store:
    """Outcomes by the key of their cell; each is on the disk before the next cell starts."""

    def __init__(self, path: Path, stream: IO[bytes], key: Key) -> None:
        self.path, self._stream = path, stream
        self.outcomes = _read_cells(path / CELLS, stream, key)

    @classmethod
    @contextmanager
    def open(
        cls,
        path: Path,
        settings: Mapping[str, Any],
        asked: Mapping[str, Any],
        key: Key = key_of,
    ) -> Iterator[Store]:
        """The store at `path`, new or of the same settings, for this process alone."""
        settings = json.loads(json.dumps(settings))  # as it will be read again
        _check_place(path)
        try:
            make_folder(path)
            check_file(path / CELLS)
            stream = (path / CELLS).open("a+b")
        except OSError as error:
            raise InputError(f"cannot write to {path}: {error.strerror or error}") from None
        with stream:
            _lock(stream, path)
            if (path / SETTINGS).exists():
                _check_same(path, settings)
            store = cls(path, stream, key)
            record = {"settings": settings, "asked": asked}
            with atomic_path(path / SETTINGS) as unfinished:
                unfinished.write_text(json.dumps(record, indent=2) + "\n")
            yield store

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Keep the outcome; it outlives whatever happens next."""
        record = {"cell": cell.label, **outcome.to_json(), "run": cell.run.to_json()}
        self._stream.write(json.dumps(record).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.outcomes[cell.key] = outcome


def _check_place(path: Path) -> None:
    """Refuse a folder of something else."""
    if path.exists() and not path.is_dir():
        raise InputError(f"cannot write to {path}: it is a file, and a comparison is a folder")
    if not path.is_dir() or (path / SETTINGS).exists():
        return
    cells = path / CELLS  # there, and empty, if the very start was cut short
    others = [item for item in path.iterdir() if item != cells and not item.name.startswith(".")]
    if others or (cells.exists() and cells.stat().st_size):
        raise InputError(f"{path} holds no comparison but is not empty; choose another --out")


def _lock(stream: IO[bytes], path: Path) -> None:
    """For this process, until the file is closed or the process ends, however it does."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"another process works on {path}; wait until it ends, or choose another --out"
        ) from None
    except OSError:  # a file system without locks
        return


def _check_same(path: Path, settings: Mapping[str, Any]) -> None:
    try:
        before = read_json(path / SETTINGS)["settings"]
        there, here = dict(_leaves(before)), dict(_leaves(settings))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{path / SETTINGS} cannot be read; choose another --out, or remove the folder"
        ) from None
    for name in {**there, **here}:
        if there.get(name) != here.get(name):
            raise InputError(
                f"{path} holds a comparison with {name} {there.get(name)}, and here it is "
                f"{here.get(name)}; choose another --out, or ask for the same"
            )


def _leaves(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name} ")
        else:
            yield f"{prefix}{name}", value


def _read_cells(path: Path, stream: IO[bytes], key: Key) -> dict[str, Outcome]:
    """Later lines count; a last line without an end was being written when the program died."""
    stream.seek(0)
    content = stream.read()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with suppress(OSError):  # Windows, where another reads it
            stream.truncate(len(whole))
    outcomes: dict[str, Outcome] = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = json.loads(line)
            outcomes[key(record["run"])] = Outcome.from_json(record)
        except (ValueError, KeyError, TypeError, AssertionError, RecursionError):
            raise InputError(
                f"line {number} of {path} is damaged; remove it, and its cell will be run again"
            ) from None
    return outcomes
