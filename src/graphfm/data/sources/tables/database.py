"""A DuckDB database beside the graph that is made: bounded, without network or extensions.

Names that a user gives are quoted, never pasted. DuckDB may open the files of the request and its
own scratch folder, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from graphfm.data.sources.tables import csv_names
from graphfm.data.sources.tables.table_files import ending_of, kind_of
from graphfm.data.sources.tables.unreadable import in_our_words, plain
from graphfm.errors import InputError, did_you_mean

FLOATS = ("FLOAT", "DOUBLE")
EXACT = 1 << 53  # from here on floating point skips whole numbers
LEAST_MEMORY = 512 << 20
OWN_MEMORY = 384 << 20  # what Python, torch and our own arrays take beside DuckDB
ROWS_AT_ONCE = 1 << 18
SIGNALS = ("KeyboardInterrupt", "Terminated")  # names of what Ctrl-C and SIGTERM raise
NESTED = "JSON"  # the type of a column of objects, or of lists beside other values
T = TypeVar("T")


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def as_text(column: str, kind: str) -> str:
    """SQL that writes a column as text: 3.0 as 3, as if it were a whole number; NaN is missing."""
    text = f"CAST({column} AS VARCHAR)"
    if kind not in FLOATS:
        return text
    whole = f"{column} = trunc({column}) AND abs({column}) < {EXACT}"
    return (
        f"CASE WHEN isnan({column}) THEN NULL WHEN {whole} THEN "
        f"CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE {text} END"
    )


class Database:
    """Tables on disk, within a limit of memory. Every error of DuckDB becomes an `InputError`."""

    def __init__(self, scratch: Path, files: Sequence[str], memory: int) -> None:
        duckdb = _duckdb()
        if memory < LEAST_MEMORY:
            raise InputError(
                f"the memory is {memory:,} bytes; expected {LEAST_MEMORY:,} or more (512MiB)"
            )
        self.limit = min(memory - OWN_MEMORY, memory * 6 // 10)
        self.error = duckdb.Error
        self._files = self._reading = list(files)  # what errors name
        self._separator = ","
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
                "TimeZone = 'UTC'",  # a time is the same text on every machine
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
        if delimiter is not None and (kind != "csv" or not csv_names.is_separator(delimiter)):
            raise InputError(f"the delimiter is {delimiter!r}; expected one character, for CSV")
        self._reading = list(files)
        if kind == "csv":
            sql = self._csv_reader(files, listed, delimiter)
        elif kind == "json":
            sql = self._json_reader(listed)
        else:  # by name, because by place DuckDB would round 1.5 if the first file has integers
            sql = f"read_parquet({listed}, union_by_name = true)"
        columns = self.columns(sql)
        self._reading = self._files
        return sql, columns

    def _csv_reader(self, files: Sequence[str], listed: str, delimiter: str | None) -> str:
        """The SQL that reads CSV, separated as the first line of the first file shows."""
        found = [self.run(csv_names.line_sql(literal(path))) for path in files]
        lines = [str(rows[0][0] or "") if rows else "" for rows in found]
        usual = "\t" if ending_of(Path(files[0])) == ".tsv" else ","
        self._separator = delimiter or csv_names.separator_of(lines[0], usual)
        for line, path in zip(lines, files, strict=True):
            csv_names.check_names(line, self._separator, path)
        return csv_names.csv_sql(listed, literal(self._separator))

    def _json_reader(self, listed: str) -> str:
        """The SQL that reads JSON lines: texts, lists of texts, or what is neither (`NESTED`).

        All lines are looked at.
        """
        whole = (
            f"read_json({listed}, format = 'newline_delimited', sample_size = -1, "
            "maximum_sample_files = 1000000, map_inference_threshold = -1, "
            "field_appearance_threshold = 0)"
        )
        columns = self.columns(whole)
        if columns.get("json", "").startswith("STRUCT"):
            raise InputError("a file holds one JSON array; expected JSON lines, an object per line")
        mixed = [name for name, type in columns.items() if type == "JSON"]
        nested = set[str]()
        if mixed:  # of texts and numbers, which is fine, or also of lists and objects
            held = ", ".join(
                f"coalesce(bool_or(json_type({quoted(name)}) IN ('ARRAY', 'OBJECT')), false)"
                for name in mixed
            )
            answer = self.one(f"SELECT {held} FROM {whole}")
            nested = {name for name, found in zip(mixed, answer, strict=True) if found}
        shape = ", ".join(
            f"{literal(name)}: '{NESTED if name in nested else _json_type(type)}'"
            for name, type in columns.items()
        )
        return f"read_json({listed}, format = 'newline_delimited', columns = {{{shape}}})"

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
            # DuckDB turns Ctrl-C and SIGTERM into errors of its own, with Python's traceback if it
            # was reading Python's objects.
            if "INTERRUPT" in str(error) or (lines and lines[-1].startswith(SIGNALS)):
                raise KeyboardInterrupt from None
            text = str(error)
            if "Out of Memory" in text or "OutOfMemory" in type(error).__name__:
                raise InputError(f"{plain(text)}; give more memory with --memory") from None
            raise InputError(in_our_words(text, self._reading, self._separator)) from None
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            raise InputError(f"the tables hold text that is not UTF-8: {error}") from None


def check_column(name: str, columns: Sequence[str], where: str, option: str = "") -> None:
    """Refuse a column that a table does not have; `option` names another."""
    if name not in columns:
        listed = ", ".join(list(columns)[:12]) + (", ..." if len(columns) > 12 else "")
        near = did_you_mean(name, columns)
        near += f"; name the column with {option}" if option else ""
        if all(known.isdecimal() for known in columns):
            near = "; give them a line of names, or call a plain list of edges .txt"
        elif len(columns) == 1 and (mark := csv_names.separator_of(columns[0], "")):
            advice = "; say so with --delimiter" if option else ""
            near = f"; they seem to be separated by {mark!r}{advice}"
        raise InputError(f"the {where} have no column {name!r}; they have {listed}{near}")


def _json_type(kind: str) -> str:
    """The type in which a column of JSON lines is read, by the type that DuckDB has found."""
    if kind.endswith("[][]") or kind.startswith(("STRUCT", "MAP")):
        return NESTED
    return "VARCHAR[]" if kind.endswith("[]") else "VARCHAR"


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
