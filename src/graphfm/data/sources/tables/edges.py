"""Edges of a user's table as pairs of node numbers in one flat file, which is then sorted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.sources.edge_sort import Rules, SortedEdges, sort_edges
from graphfm.data.sources.preparation import GIVEN, UNDIRECTED
from graphfm.data.sources.tables.database import Database, check_column, quoted
from graphfm.data.sources.tables.nodes import add_unknown, id_sql, refuse
from graphfm.data.sources.tables.request import EdgeTable, Request
from graphfm.errors import InputError

Array = np.ndarray[Any, Any]
log = logging.getLogger("graphfm")
LEAST, MOST = 1e-30, 1e30  # weights that a graph may have
PAIRS_AT_ONCE = 1 << 20
LOOPS = "SELECT count(*) - count(DISTINCT s) FROM pair WHERE s = t"  # rows that repeat a self-loop
NUMBER = "TRY_CAST(w AS DOUBLE)"


def read_edges(
    db: Database, edges: EdgeTable, relation: str, columns: Mapping[str, str], kind: str
) -> None:
    """Make `edge` with source s, target t and weight w. Parquet is not copied for that."""
    for name in filter(None, (edges.source, edges.target, edges.weight)):
        check_column(name, list(columns), "edges")
    source, target = (id_sql(name, columns[name], kind) for name in (edges.source, edges.target))
    # not a number yet: DuckDB would let its reader of CSV convert it, which knows no TRY_CAST
    weight = f", {quoted(edges.weight)} AS w" if edges.weight else ""
    made = "VIEW" if relation.startswith("read_parquet") else "TABLE"
    db.run(f"CREATE {made} edge AS SELECT {source} AS s, {target} AS t{weight} FROM {relation}")


def number_edges(db: Database, request: Request, path: Path) -> dict[str, Any]:
    """Write the pairs of numbers of all edges to a file; return what was found.

    The ends are looked up one after the other, so that one table of ids is in memory at a time.
    """
    weighted = request.edges.weight is not None
    rows, empty = db.one("SELECT count(*), count(*) FILTER (s IS NULL OR t IS NULL) FROM edge")
    if not rows and not request.joins:
        log.warning("the tables of edges have no rows, so the graph has no edges")
    if empty:
        refuse(request, "missing-ids", f"{empty:,} of {rows:,} edges have no source or no target")
    bad = 0
    if weighted:
        fits = f"{NUMBER} >= {LEAST} AND {NUMBER} <= {MOST}"
        bad = int(db.one(f"SELECT count(*) FILTER (NOT coalesce({fits}, false)) FROM edge")[0])
    if bad:
        refuse(
            request, "bad-weights",
            f"{bad:,} of {rows:,} edges have a weight that is missing, no number or not within "
            f"{LEAST} to {MOST}",
        )  # fmt: skip
    added = add_unknown(db) if request.add_unknown or not request.nodes.files else 0
    more, kept = (f", {NUMBER} AS w", f" AND {fits}") if weighted else ("", "")
    db.run(
        f"CREATE TABLE half AS SELECT n.rowid::INTEGER AS s, e.t{more} FROM edge e LEFT JOIN "
        f"node n ON e.s = n.id WHERE e.s IS NOT NULL AND e.t IS NOT NULL{kept}"
    )
    db.run(
        "CREATE TABLE pair AS SELECT h.* EXCLUDE (t), n.rowid::INTEGER AS t FROM half h "
        "LEFT JOIN node n ON h.t = n.id"
    )
    db.run("DROP TABLE half")
    unknown = int(db.one("SELECT count(*) FILTER (s IS NULL OR t IS NULL) FROM pair")[0])
    if unknown:
        raise_unknown(db, request, unknown, rows)
    _write(db, path, weighted)
    return {
        "edge_rows": rows,
        "edges_without_id": empty,
        "edges_with_bad_weight": bad,
        "edges_with_unknown_id": unknown,
        "nodes_added": added,
        "repeated_loops": int(db.one(LOOPS)[0]),
    }


def raise_unknown(db: Database, request: Request, unknown: int, rows: int) -> None:
    """Refuse edges to nodes that are not in the table, unless they may be left out."""
    if "unknown-ids" in request.allow:
        return
    sql = "SELECT {0} FROM edge ANTI JOIN node ON edge.{0} = node.id WHERE {0} IS NOT NULL LIMIT 1"
    found = db.run(sql.format("s")) or db.run(sql.format("t"))
    who = "neither the graph nor the new nodes have" if request.joins else "the nodes do not have"
    advice = "mend the tables" if request.joins else (
        "leave them out with --allow unknown-ids, or add these nodes with --add-unknown"
    )  # fmt: skip
    raise InputError(
        f"{unknown:,} of {rows:,} edges have an id that {who}, such as {found[0][0]!r}; {advice}"
    )


def pair_type(weighted: bool) -> np.dtype[Any]:
    """One edge in the flat file."""
    names = [("s", "<i4"), ("t", "<i4"), ("w", "<f4")]
    return np.dtype(names if weighted else names[:2])


def _write(db: Database, path: Path, weighted: bool) -> None:
    kind = pair_type(weighted)
    names = list(kind.names or ())
    with path.open("wb") as stream:
        for _, _, columns in db.pieces(", ".join(names), "pair", PAIRS_AT_ONCE):
            known = ~(np.ma.getmaskarray(columns["s"]) | np.ma.getmaskarray(columns["t"]))
            rows = np.empty(int(known.sum()), kind)
            for name in names:
                rows[name] = np.ma.getdata(columns[name])[known]
            stream.write(rows.data)


def sort_pairs(
    path: Path, num_nodes: int, edges: EdgeTable, out: Path, tell: Callable[[int], None]
) -> tuple[SortedEdges, int]:
    """Sort the edges of the flat file into the graph; return what was found and isolated nodes."""
    weighted = edges.weight is not None
    kind, seen = pair_type(weighted), np.zeros(num_nodes, bool)

    def read() -> Iterator[tuple[Array, ...]]:
        with path.open("rb") as stream:
            while len(rows := np.fromfile(stream, kind, PAIRS_AT_ONCE)):
                seen[rows["s"]] = True
                seen[rows["t"]] = True
                yield tuple(rows[name] for name in kind.names or ())

    direction = UNDIRECTED if edges.undirected else GIVEN
    found = sort_edges(
        read, num_nodes, direction, out, rules=Rules(edges.duplicate_rule, weighted), tell=tell
    )
    if edges.duplicates is None and found.conflicts and edges.duplicate_rule == "drop":
        raise InputError(
            f"{found.conflicts:,} edges occur again with another weight; say what holds with "
            "--duplicates: drop (the largest weight), sum or keep"
        )
    return found, int((~seen).sum())
