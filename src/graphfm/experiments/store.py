"""The folder of an experiment: what was asked, and every cell that ended."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from graphfm.errors import InputError
from graphfm.experiments.cell import SCORE, Cell, key_of
from graphfm.experiments.outcome import Outcome
from graphfm.files import atomic_path, check_file, make_folder, read_json

SETTINGS, CELLS = "comparison.json", "cells.jsonl"
SCRATCH = ".cell"  # the cache of the cell that runs; it is removed when the cell ends


class MemoryStore:
    """Outcomes by the key of their cell, for as long as this process lives."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Keep the outcome of a cell."""
        self.outcomes[cell.key] = outcome


class Store(MemoryStore):
    """Outcomes in a folder; each is on the disk before the next cell starts."""

    def __init__(self, path: Path, stream: IO[bytes], dataset: str | None) -> None:
        super().__init__()
        self.path, self._stream = path, stream
        self.outcomes = _read_cells(path / CELLS, stream, dataset)

    @classmethod
    @contextmanager
    def open(
        cls,
        path: Path,
        settings: Mapping[str, Any],
        asked: Mapping[str, Any],
        *,
        dataset: str | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> Iterator[Store]:
        """Open the store at `path`, new or with the same settings, for this process alone.

        Where `dataset` is given, all cells are of that one graph under whatever name (its
        fingerprint is among the settings). `defaults` are the values of settings that a folder
        of an older version does not mention.
        """
        check_place(path)
        try:
            make_folder(path)
            check_file(path / CELLS)
            stream = (path / CELLS).open("a+b")
        except OSError as error:
            raise InputError(f"cannot write to {path}: {error.strerror or error}") from None
        with stream:
            _lock(stream, path)
            keep_settings(path / SETTINGS, settings, asked, defaults)
            store = cls(path, stream, dataset)
            yield store

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Keep the outcome of a cell, on the disk before this returns."""
        record = {"cell": cell.label, **outcome.to_json(), "run": cell.run.to_json()}
        if cell.measure != SCORE:
            record["measure"] = cell.measure
        if digests := cell.run.digests():
            record["digests"] = digests
        self._stream.write(json.dumps(record).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        super().add(cell, outcome)


@contextmanager
def memory_store() -> Iterator[MemoryStore]:
    """A store without a folder, to stand in for `Store.open`."""
    yield MemoryStore()


def keep_settings(
    file: Path,
    settings: Mapping[str, Any],
    asked: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Write what all cells share and what was asked; refuses settings other than those before."""
    settings = json.loads(json.dumps(settings))  # as it will be read again
    if file.exists():
        _check_same(file, settings, json.loads(json.dumps(defaults or {})))
    with atomic_path(file) as unfinished:
        unfinished.write_text(json.dumps({"settings": settings, "asked": asked}, indent=2) + "\n")


def check_place(path: Path, settings: str = SETTINGS) -> None:
    """Refuse a folder that holds something else."""
    if path.exists() and not path.is_dir():
        raise InputError(f"cannot write to {path}: it is a file; choose a folder with --out")
    if not path.is_dir() or (path / settings).exists():
        return
    cells = path / CELLS  # exists and is empty if the very start was cut short
    others = [item for item in path.iterdir() if item != cells and not item.name.startswith(".")]
    if others or (cells.exists() and cells.stat().st_size):
        raise InputError(
            f"{path} is not empty and holds no results of this command; choose another --out"
        )


def _lock(stream: IO[bytes], path: Path) -> None:
    """Lock the file until it is closed or this process ends, however that happens."""
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


def _check_same(file: Path, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse a folder whose cells were run with other settings, and name the first of them."""
    path = file.parent
    try:
        before = read_json(file)["settings"]
        there, here = dict(_leaves(before)), dict(_leaves(settings))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{file} cannot be read; choose another --out, or remove the folder"
        ) from None
    there = {**dict(_leaves(defaults)), **there}
    for name in {**there, **here}:
        if there.get(name) != here.get(name):
            old, now = there.get(name), here.get(name)
            if name == "graph fingerprint":
                raise InputError(
                    f"{path} holds results of another graph (its fingerprint was {old} and is now "
                    f"{now}); choose another --out, or give the graph as it was"
                )
            with_old = f"without {name}" if old is None else f"with {name} {old}"
            raise InputError(
                f"{path} holds results {with_old}, but this command has "
                f"{'none' if now is None else now}; choose another --out, or give the same settings"
            )


def _leaves(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a nested record, each with its path as its name."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name} ")
        else:
            yield f"{prefix}{name}", value


def _read_cells(path: Path, stream: IO[bytes], dataset: str | None) -> dict[str, Outcome]:
    """Read all lines; of one cell the last counts.

    A last line without its end was being written when the program died, and is removed.
    """
    stream.seek(0)
    content = stream.read()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with suppress(OSError):  # Windows, where another process reads the file
            stream.truncate(len(whole))
    outcomes: dict[str, Outcome] = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = json.loads(line)
            run = record["run"] if dataset is None else {**record["run"], "dataset": dataset}
            key = key_of(run, record.get("measure", SCORE), record.get("digests"))
            outcomes[key] = Outcome.from_json(record)
        except InputError as error:  # such as the format of a newer version
            raise InputError(f"line {number} of {path} cannot be used: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError):
            raise InputError(
                f"line {number} of {path} is damaged; remove it, and its cell will be run again"
            ) from None
    return outcomes
