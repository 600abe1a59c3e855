"""A DuckDB database beside the graph that is made: bounded, without network or extensions.

Names that a user gives are quoted, never pasted. DuckDB may open the files of the request and its
own scratch folder, and nothing else.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from graphfm.errors import InputError, did_you_mean

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
PACKED = (".gz", ".zst")
LEAST_MEMORY = 512 << 20
OWN_MEMORY = 384 << 20  # what Python, torch and our own arrays take beside DuckDB
ROWS_AT_ONCE = 1 << 18
T = TypeVar("T")


class Column(NamedTuple):
    """A column of a table: its name and DuckDB's name of its type."""

    name: str
    type: str


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


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
            found.setdefault(os.path.realpath(path), path)
    return list(found)


def kind_of(files: Sequence[str]) -> str:
    """csv, json or parquet, by the endings of the files."""
    kinds = {_kind(Path(path)) for path in files}
    if len(kinds) > 1:
        raise InputError(f"the files are of several kinds ({', '.join(sorted(kinds))}); give one")
    return kinds.pop()


def _kind(path: Path) -> str:
    ending = path.suffix.lower()
    name = path.stem if ending in PACKED else path.name
    kind = KINDS.get(Path(name).suffix.lower())
    if kind is None or (kind == "parquet" and ending in PACKED):
        raise InputError(
            f"{str(path)!r} ends with {ending or 'nothing'!r}; expected .csv, .tsv, .jsonl or "
            ".parquet (and .gz or .zst after all but the last)"
        )
    return kind


class Database:
    """Tables on disk, within a limit of memory. Every error of DuckDB becomes an `InputError`."""

    def __init__(self, scratch: Path, files: Sequence[str], memory: int) -> None:
        duckdb = _duckdb()
        if memory < LEAST_MEMORY:
            raise InputError(f"the memory is {memory:,} bytes; expected {LEAST_MEMORY:,} or more")
        self.limit = min(memory - OWN_MEMORY, memory * 6 // 10)
        self.error = duckdb.Error
        with self._explained():
            self._connection = duckdb.connect(
                str(scratch / "tables.db"),
                config={
                    "memory_limit": f"{self.limit}B",
                    "temp_directory": str(scratch / "spilled"),
                    "threads": str(_cores()),
                    "preserve_insertion_order": "true",  # a node's number is the place of its row
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                },
            )
            listed = ", ".join(literal(path) for path in files)
            folder = literal(f"{scratch.resolve()}/")
            for setting in (
                f"allowed_paths = [{listed}]",
                f"allowed_directories = [{folder}]",
                "enable_external_access = false",
                "enable_progress_bar = false",
                "lock_configuration = true",
            ):
                self._connection.execute(f"SET {setting}")

    def close(self) -> None:
        self._connection.close()

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, which must be few."""
        return self._done(lambda: self._connection.execute(sql, list(values)).fetchall())

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The only row of an answer."""
        return self.run(sql, values)[0]

    def arrays(self, sql: str, values: Sequence[Any] = ()) -> dict[str, Any]:
        """The columns of an answer as numpy arrays, masked where values are missing."""
        return self._done(lambda: self._connection.execute(sql, list(values)).fetchnumpy())

    def insert(self, statement: str, columns: dict[str, Any]) -> None:
        """Run CREATE TABLE or INSERT with rows that are in memory."""
        listed = ", ".join(
            f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" if values.dtype == object
            else quoted(name)
            for name, values in columns.items()
        )  # fmt: skip
        with self._explained():
            self._connection.register("given", columns)
        self.run(f"{statement} SELECT {listed} FROM given")
        self._connection.unregister("given")

    def pieces(self, what: str, table: str, at_once: int = ROWS_AT_ONCE) -> Iterator[Any]:
        """Yield first row, last row and columns of a table by ranges of row numbers."""
        total = int(self.one(f"SELECT count(*) FROM {table}")[0])
        for start in range(0, total, at_once):
            end = min(start + at_once, total)
            where = f"FROM {table} WHERE rowid >= {start} AND rowid < {end}"
            yield start, end, self.arrays(f"SELECT {what} {where}")

    def columns(self, relation: str) -> dict[str, str]:
        """Names and types of the columns of a relation."""
        return {str(row[0]): str(row[1]) for row in self.run(f"DESCRIBE SELECT * FROM {relation}")}

    def reader(self, files: Sequence[str], delimiter: str | None) -> tuple[str, dict[str, str]]:
        """The SQL that reads some files, and their columns. Text is not guessed to be numbers."""
        kind = kind_of(files)
        listed = "[" + ", ".join(literal(path) for path in files) + "]"
        if delimiter is not None and (kind != "csv" or len(delimiter.encode()) != 1):
            raise InputError(f"the delimiter is {delimiter!r}; expected one character, for CSV")
        if kind == "csv":
            tabs = ".tsv" in Path(files[0]).name.lower()
            separator = delimiter or ("\t" if tabs else ",")
            sql = (
                f"read_csv({listed}, header = true, all_varchar = true, quote = '\"', "
                f"escape = '\"', delim = {literal(separator)}, strict_mode = true, "
                "sample_size = 1000)"
            )
        elif kind == "json":
            sql = f"read_json({listed}, format = 'newline_delimited')"
            shape = ", ".join(
                f"{literal(name)}: {literal(type if type.endswith('[]') else 'VARCHAR')}"
                for name, type in self.columns(sql).items()
            )
            sql = f"read_json({listed}, format = 'newline_delimited', columns = {{{shape}}})"
        else:
            sql = f"read_parquet({listed})"
        return sql, self.columns(sql)

    def _done(self, statement: Callable[[], T]) -> T:
        """Run a statement on a thread of its own, and interrupt it if a signal arrives.

        On the main thread DuckDB would look for signals between its tasks only, which can be
        minutes apart.
        """
        with self._explained(), ThreadPoolExecutor(1) as pool:
            answer = pool.submit(statement)
            try:
                return answer.result()
            except BaseException:
                while not answer.done():  # it may not have begun, and would then not notice
                    self._connection.interrupt()
                    wait([answer], timeout=0.05)
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self.error as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            text = " ".join(lines[:4])[:400]
            if "Out of Memory" in text or "OutOfMemory" in type(error).__name__:
                raise InputError(f"{text}; give more memory with --memory") from None
            raise InputError(f"the tables cannot be read: {text}") from None
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            raise InputError(f"the tables hold text that is not UTF-8: {error}") from None


def check_column(name: str, columns: Sequence[str], where: str) -> None:
    """Refuse a column that a table does not have."""
    if name not in columns:
        listed = ", ".join(list(columns)[:12]) + (", ..." if len(columns) > 12 else "")
        near = did_you_mean(name, columns)
        raise InputError(f"the {where} have no column {name!r}; they have {listed}{near}")


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "reading and writing tables needs DuckDB; install it: pip install 'graphfm[import]'"
        ) from None
    return duckdb


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
