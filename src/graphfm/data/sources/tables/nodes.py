"""The table of nodes: a row per node, whose place is the node's number, and the ids in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.formats.array_file import ArrayFile, write_array
from graphfm.data.sources.tables.database import (
    EXACT,
    FLOATS,
    NESTED,
    Database,
    as_text,
    check_column,
    literal,
    quoted,
)
from graphfm.data.sources.tables.request import NodeTable, Request, Split
from graphfm.errors import InputError, counted

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
BYTES_PER_ID = 300  # of DuckDB's memory, while distinct ids are looked for
MOST_NODES = (1 << 31) - 2
NUL = "{} holds a text with a NUL byte; remove it from the table"


def id_type(types: Sequence[str]) -> str:
    """The type in which ids are compared: whole numbers if all are, text otherwise."""
    for kind in types:
        if kind == NESTED:
            raise InputError("an id column holds objects or lists; expected texts or numbers")
        if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "BLOB", "UNION")):
            raise InputError(f"an id column holds {kind} values; expected texts or numbers")
    return "BIGINT" if all(kind in INTEGERS for kind in types) else "VARCHAR"


def id_sql(name: str, column: str, kind: str) -> str:
    """SQL of an id in the type in which ids are compared; `column` is the type of its column."""
    if kind == "BIGINT":
        return f"CAST({quoted(name)} AS BIGINT)"
    place, text = quoted(name), as_text(quoted(name), column)
    if column == "VARCHAR":
        wrong, advice = f"contains({place}, chr(0))", NUL.format(name)
    elif column in FLOATS:
        wrong = f"NOT isnan({place}) AND abs({place}) >= {EXACT}"
        advice = f"{name} holds ids in floating point that are rounded; store them as text"
    else:
        return text
    return f"CASE WHEN {wrong} THEN error({literal(advice)}) ELSE {text} END"


def named_columns(nodes: NodeTable) -> dict[str, str]:
    """Each column of the table `node`, with the user's column that it is made of."""
    named = {"id": nodes.id, "label": nodes.label}
    if isinstance(nodes.split, Split):
        named["time"] = nodes.split.time
    else:
        named["split"] = nodes.split
    named |= {f"f{number}": name for number, name in enumerate(nodes.features)}
    named |= {f"y{number}": name for number, name in enumerate(nodes.regress)}
    return {key: name for key, name in named.items() if name is not None}


def _option(key: str) -> str:
    """The option that names a column of the table `node`."""
    return {"f": "--feature", "y": "--regress"}.get(key[0], f"--{key}")


def _value_sql(name: str, kind: str, text: bool, missing: Sequence[str]) -> str:
    """SQL of a value: as text where its text is what counts, and nothing where it is missing."""
    if kind.endswith("]"):
        return quoted(name)
    value = as_text(quoted(name), kind) if text else quoted(name)
    if not missing:
        return value
    listed = ", ".join(literal(text) for text in missing)
    return f"CASE WHEN {as_text(quoted(name), kind)} IN ({listed}) THEN NULL ELSE {value} END"


def make_nodes(
    db: Database, request: Request, relation: str, columns: Mapping[str, str], kind: str
) -> None:
    """Make the table `node` of the user's columns."""
    nodes, joins = request.nodes, request.joins
    named = named_columns(nodes)
    for key, name in named.items():
        check_column(name, list(columns), "nodes", "" if joins else _option(key))
        if columns[name] == NESTED:
            raise InputError(
                f"{name!r} holds objects, or lists beside other values; expected texts, numbers or "
                "lists of them"
            )
    texts = {"label", "split"}
    encodings = nodes.features.values()
    texts |= {f"f{number}" for number, how in enumerate(encodings) if how == "one-hot"}
    made = {
        key: _value_sql(name, columns[name], key in texts, nodes.missing)
        for key, name in named.items()
    }
    made["id"] = id_sql(nodes.id, columns[nodes.id], kind)
    listed = ", ".join(f"{sql} AS {key}" for key, sql in made.items())
    db.run(f"CREATE TABLE node AS SELECT {listed} FROM {relation}")


def read_nodes(
    db: Database, request: Request, relation: str, columns: Mapping[str, str], kind: str
) -> dict[str, Any]:
    """Make the table `node` of the user's nodes; return what was found."""
    make_nodes(db, request, relation, columns, kind)
    rows, empty = db.one("SELECT count(*), count(*) FILTER (id IS NULL) FROM node")
    if empty:
        refuse(request, "missing-ids", f"{empty:,} of {rows:,} rows of the nodes have no id")
        db.run("CREATE TABLE whole AS SELECT * FROM node WHERE id IS NOT NULL")
        _replace(db)
    repeated = _repeated(db, rows)
    if repeated:
        value = db.one("SELECT id FROM node GROUP BY id HAVING count(*) > 1 LIMIT 1")[0]
        again = counted(repeated, "row repeats an id", "rows repeat an id")
        refuse(request, "duplicate-ids", f"{again}, such as {value!r}")
        db.run(
            "CREATE TABLE whole AS SELECT * FROM node WHERE rowid IN "
            "(SELECT min(rowid) FROM node GROUP BY id) ORDER BY rowid"
        )
        _replace(db)
    used = named_columns(request.nodes).values()
    return {
        "node_rows": rows,
        "rows_without_id": empty,
        "repeated_ids": repeated,
        "unused_columns": [name for name in columns if name not in used],
    }


def _replace(db: Database) -> None:
    db.run("DROP TABLE node")
    db.run("ALTER TABLE whole RENAME TO node")


def parts_for(db: Database, count: int) -> int:
    """Into how many parts ids are dealt, so that each fits into memory."""
    return max(1, -(-count * BYTES_PER_ID // db.limit))


def _repeated(db: Database, rows: int) -> int:
    """Rows whose id another row has. One DISTINCT over all ids would run out of memory."""
    parts = parts_for(db, rows)
    counts = (
        db.one(f"SELECT count(*) - count(DISTINCT id) FROM node WHERE hash(id) % {parts} = {part}")
        for part in range(parts)
    )
    return sum(int(count[0]) for count in counts)


def add_unknown(db: Database) -> int:
    """Append every id that only edges have to the table `node`, in order; return how many."""
    before = db.one("SELECT count(*) FROM node")[0]
    about = sum(db.one("SELECT approx_count_distinct(s), approx_count_distinct(t) FROM edge"))
    parts = parts_for(db, int(about))
    db.run("CREATE TABLE extra AS SELECT id FROM node LIMIT 0")
    for part in range(parts):
        mine = f"% {parts} = {part}"
        db.run(
            "INSERT INTO extra SELECT DISTINCT id FROM (SELECT s AS id FROM edge "
            f"WHERE hash(s) {mine} UNION ALL SELECT t FROM edge WHERE hash(t) {mine}) AS ends "
            f"ANTI JOIN (SELECT id FROM node WHERE hash(id) {mine}) AS known USING (id) "
            "WHERE id IS NOT NULL"
        )
    db.run("INSERT INTO node (id) SELECT id FROM extra ORDER BY TRY_CAST(id AS BIGINT), id")
    db.run("DROP TABLE extra")
    return int(db.one("SELECT count(*) FROM node")[0]) - int(before)


def count_nodes(db: Database) -> int:
    """The number of nodes, which must be one that a graph can have."""
    count = int(db.one("SELECT count(*) FROM node")[0])
    if not 0 < count <= MOST_NODES:
        raise InputError(f"the tables hold {count:,} nodes; expected 1 to {MOST_NODES:,}")
    return count


def write_ids(db: Database, kind: str, out: Path) -> None:
    """Write the ids: one array of numbers, or offsets and the bytes of all texts."""
    if kind == "BIGINT":
        with ArrayFile(out / "ids.npy", "<i8") as file:
            for _, _, columns in db.pieces("id", "node"):
                file.append(np.asarray(columns["id"]))
        return
    lengths: list[Any] = []
    with ArrayFile(out / "id_bytes.npy", "|u1") as file:
        for start, end, columns in db.pieces("strlen(id)::INTEGER AS size", "node"):
            lengths.append(np.asarray(columns["size"]).astype(np.int32))
            text = db.one(
                "SELECT string_agg(id, '' ORDER BY rowid) FROM node "
                f"WHERE rowid >= {start} AND rowid < {end}"
            )[0]
            file.append(np.frombuffer(text.encode(), np.uint8))
    offsets = np.zeros(sum(len(piece) for piece in lengths) + 1, np.int64)
    np.cumsum(np.concatenate(lengths), out=offsets[1:])
    write_array(out / "id_offsets.npy", "<i8", offsets)


def refuse(request: Request, loss: str, problem: str) -> None:
    """Refuse to lose something, unless the request allows it."""
    if loss not in request.allow:
        allowed = "" if request.joins else f", or allow it with --allow {loss}"
        raise InputError(f"{problem}; mend the tables{allowed}")
