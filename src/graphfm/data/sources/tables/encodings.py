"""Features from columns by named encodings. What was fitted can be kept as JSON and used again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from graphfm.data.sources.tables.database import ROWS_AT_ONCE, Database
from graphfm.errors import InputError, counted, known_name

Array = np.ndarray[Any, Any]
ENCODINGS = {
    "as-is": "numbers, or lists of equally many numbers, unchanged",
    "standard": "mean 0 and standard deviation 1",
    "min-max": "from 0 to 1",
    "rank-gauss": "the rank, drawn onto a normal distribution",
    "one-hot": "one column of 0 and 1 for each value",
    "buckets": "one column of 0 and 1 for each of 10 equally full ranges; buckets:N for N",
    "boolean": "true is 1, false is 0",
}
MOST_VALUES = 4096  # columns that one-hot may make
MOST_WIDTH = 1 << 16
FITTED_ROWS = 1 << 20  # ranks are fitted on at most so many rows, evenly spread
QUANTILES = 256
GAP = "name it with --missing if it means a missing value"
WORDS = f"{GAP}, or encode words by one-hot"
NUMBERS_AT_ONCE = 1 << 22  # features that are encoded at a time


@dataclass(frozen=True)
class Encoding:
    """A column, its encoding and the fitted values.

    A missing value of a numeric or boolean column becomes 0, which is the mean of "standard" and
    the median of "rank-gauss", and one more column says so; in one-hot and buckets it is 0
    everywhere. "as-is" refuses it.
    """

    column: str
    encoding: str
    width: int
    missing: int = 0  # rows without a value
    flagged: bool = False  # whether the last column says that the value was missing
    fitted: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def fit(db: Database, name: str, wanted: str, place: str, kind: str) -> Encoding:
    """Fit an encoding to the column `place` of the table `node`."""
    base, _, number = wanted.partition(":")
    known_name("encoding", base, ENCODINGS)
    if number and (base != "buckets" or not number.isdecimal() or not 2 <= int(number) <= 1000):
        raise InputError(f"{name}={wanted}: expected buckets:N with N from 2 to 1000")
    if kind.endswith("]"):
        return _fit_lists(db, name, base, place)
    missing = _missing(db, name, place)
    if base == "one-hot":
        return _fit_values(db, name, place, missing)
    text = "BOOLEAN" if base == "boolean" else "DOUBLE"
    check_castable(db, name, base, place, text, WORDS)
    if text == "DOUBLE":  # NaN is missing too
        missing = _missing(db, name, number_sql(place))
    if base in ("boolean", "as-is"):
        if base == "as-is" and missing:
            who = counted(missing, "row has", "rows have")
            raise InputError(
                f"{who} no {name!r}, which is taken as it is; encode it by "
                "standard, min-max or rank-gauss, which say what is missing"
            )
        return Encoding(name, base, 1 + bool(missing), missing, bool(missing))
    fitted = _fit_numbers(db, base, place, int(number or 10))
    if base == "buckets":
        return Encoding(name, base, len(fitted["bounds"]) + 1, missing, False, fitted)
    return Encoding(name, base, 1 + bool(missing), missing, bool(missing), fitted)


def _missing(db: Database, name: str, value: str) -> int:
    """How many rows lack a value; refuses a column without any."""
    rows, known = db.one(f"SELECT count(*), count({value}) FROM node")
    if not known:
        raise InputError(f"the feature {name!r} has no values; leave it out")
    return int(rows - known)


def _fit_lists(db: Database, name: str, base: str, place: str) -> Encoding:
    if base != "as-is":
        raise InputError(f"{name!r} holds lists; expected the encoding as-is, not {base}")
    rows, count, low, high = db.one(
        f"SELECT count(*), count({place}), min(len({place})), max(len({place})) FROM node"
    )
    if count < rows or low != high or not low or low > MOST_WIDTH:
        raise InputError(
            f"{name!r} holds lists of {low} to {high} numbers, and {rows - count:,} rows have "
            f"none; expected lists of equally many, at most {MOST_WIDTH:,}, everywhere"
        )
    empty = f"len(list_filter({place}, lambda v: TRY_CAST(v AS DOUBLE) IS NULL)) > 0"
    if int(db.one(f"SELECT count(*) FILTER ({empty}) FROM node")[0]):
        raise InputError(f"{name!r} holds a list with a value that is missing or no number")
    return Encoding(name, base, int(low), fitted={"list": True})


def _fit_values(db: Database, name: str, place: str, missing: int) -> Encoding:
    values = db.run(
        f"SELECT DISTINCT CAST({place} AS VARCHAR) AS v FROM node WHERE {place} IS NOT NULL "
        f"ORDER BY TRY_CAST(v AS DOUBLE), v LIMIT {MOST_VALUES + 1}"
    )
    if len(values) > MOST_VALUES:
        raise InputError(
            f"{name!r} has more than {MOST_VALUES:,} values; one-hot expects 1 to {MOST_VALUES:,}; "
            "use buckets or rank-gauss for numbers, or leave it out"
        )
    found = [str(row[0]) for row in values]
    return Encoding(name, "one-hot", len(found), missing, False, {"values": found})


def check_castable(db: Database, name: str, base: str, place: str, kind: str, advice: str) -> None:
    """Refuse a column with a value that is no finite number, or neither true nor false."""
    wrong = f"{place} IS NOT NULL AND TRY_CAST({place} AS {kind}) IS NULL"
    if kind == "DOUBLE":
        wrong += f" OR isinf(TRY_CAST({place} AS DOUBLE))"
    found = db.run(f"SELECT CAST({place} AS VARCHAR) FROM node WHERE {wrong} LIMIT 1")
    if found:
        expected = "true or false" if kind == "BOOLEAN" else "finite numbers"
        raise InputError(f"{name!r} holds {found[0][0]!r}; {base} expects {expected}; {advice}")


def number_sql(place: str) -> str:
    """A number, and nothing where it is missing or NaN."""
    value = f"TRY_CAST({place} AS DOUBLE)"
    return f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END"


def _fit_numbers(db: Database, base: str, place: str, buckets: int) -> dict[str, Any]:
    number = number_sql(place)
    if base == "standard":
        mean, deviation = db.one(f"SELECT avg({number}), stddev_pop({number}) FROM node")
        return {"mean": mean or 0.0, "deviation": deviation or 0.0}
    if base == "min-max":
        low, high = db.one(f"SELECT min({number}), max({number}) FROM node")
        return {"low": low or 0.0, "high": high or 0.0}
    step = max(1, -(-int(db.one("SELECT count(*) FROM node")[0]) // FITTED_ROWS))
    points = np.linspace(0, 1, QUANTILES + 1 if base == "rank-gauss" else buckets + 1)
    inner = [float(point) for point in points]
    found = db.one(
        f"SELECT quantile_cont(v, {inner}) FROM (SELECT {number} AS v FROM node "
        f"WHERE rowid % {step} = 0) WHERE v IS NOT NULL"
    )[0] or [0.0, 1.0]
    if base == "buckets":
        return {"bounds": sorted(set(found[1:-1]))}
    return {"quantiles": found}


class Features:
    """Reads columns by ranges of rows and encodes them."""

    def __init__(self, db: Database, encodings: list[Encoding]) -> None:
        self.db, self.encodings = db, encodings
        self.width = sum(encoding.width for encoding in encodings)
        for number, encoding in enumerate(encodings):
            if encoding.encoding == "one-hot":
                db.run(f"CREATE TABLE values{number} AS SELECT unnest(?) AS v", [_values(encoding)])
                db.run(f"CREATE TYPE values_of{number} AS ENUM (SELECT v FROM values{number})")

    def pieces(self, num_nodes: int) -> Iterator[Array]:
        """Yield the features of all nodes in float32; refuse those that float32 cannot hold."""
        at_once = max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // self.width))
        for start in range(0, num_nodes, at_once):
            with np.errstate(over="ignore"):  # infinite features are refused below
                rows = self._rows(start, min(start + at_once, num_nodes)).astype(np.float32)
            bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(bad):
                row = start + int(bad[0])
                raise InputError(f"row {row} of the nodes has a feature that is NaN or too large")
            yield rows

    def _rows(self, start: int, end: int) -> Array:
        where = f"FROM node WHERE rowid >= {start} AND rowid < {end}"
        plain = [n for n, encoding in enumerate(self.encodings) if not is_list(encoding)]
        listed = ", ".join(f"{self._sql(n)} AS c{n}" for n in plain)
        columns = self.db.arrays(f"SELECT {listed} {where}") if plain else {}
        blocks = []
        for number, encoding in enumerate(self.encodings):
            if is_list(encoding):
                sql = f"SELECT unnest(CAST(f{number} AS DOUBLE[])) AS c {where}"
                flat = np.asarray(self.db.arrays(sql)["c"])
                blocks.append(flat.reshape(end - start, encoding.width))
            else:
                column = columns[f"c{number}"]
                values = np.ma.getdata(column).astype(np.float64)
                blocks.append(encode(encoding, values, np.ma.getmaskarray(column)))
        return np.concatenate(blocks, axis=1)

    def _sql(self, number: int) -> str:
        encoding, place = self.encodings[number].encoding, f"f{number}"
        if encoding == "one-hot":
            code = f"TRY_CAST(CAST({place} AS VARCHAR) AS values_of{number})"
            return f"CASE WHEN {place} IS NULL THEN NULL ELSE enum_code({code}) END::DOUBLE"
        if encoding == "boolean":
            return f"TRY_CAST({place} AS BOOLEAN)::INTEGER::DOUBLE"
        return number_sql(place)


def is_list(encoding: Encoding) -> bool:
    """True if the column holds lists, each number of which is a feature."""
    return bool(encoding.fitted.get("list"))


def _values(encoding: Encoding) -> list[str]:
    return [str(value) for value in encoding.fitted["values"]]


def encode(encoding: Encoding, values: Array, missing: Array) -> Array:
    """Encode numbers, or the codes of values, of one column: [rows, width]."""
    fitted, kind = encoding.fitted, encoding.encoding
    values = np.where(missing, 0.0, values)
    if kind in ("one-hot", "buckets"):
        code = values
        if kind == "buckets":
            code = np.searchsorted(np.array(fitted["bounds"], np.float64), values, "right")
        block = np.zeros((len(values), encoding.width))
        known = ~missing
        block[np.flatnonzero(known), code[known].astype(np.int64)] = 1
        return block
    if kind == "standard":
        deviation = fitted["deviation"]  # of a constant column it is rounding error, and it gets 0
        constant = deviation <= 1e-7 * abs(fitted["mean"])
        values = (values - fitted["mean"]) / (np.inf if constant else deviation)
    elif kind == "min-max":
        span = fitted["high"] - fitted["low"]
        values = (values - fitted["low"]) / (span if span > 0 else np.inf)
    elif kind == "rank-gauss":
        values = _gauss(values, np.array(fitted["quantiles"], np.float64))
    values = np.where(missing, 0.0, values)
    return np.stack([values, missing] if encoding.flagged else [values], axis=1)


def _gauss(values: Array, quantiles: Array) -> Array:
    points = np.linspace(0, 1, len(quantiles))
    low = np.interp(values, quantiles, points)
    high = 1 - np.interp(-values, -quantiles[::-1], points)  # equal values share their middle rank
    rank = torch.from_numpy(np.clip((low + high) / 2, 1e-4, 1 - 1e-4))
    normal: Array = torch.special.ndtri(rank).numpy()
    return normal
