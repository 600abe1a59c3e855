"""Small tables for the tests of the import, and how they are imported."""

import json
from pathlib import Path

from graphfm import Graph, load
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import EdgeTable, NodeTable, Request

MEMORY = 1 << 30


def csv_of(path: Path, rows: list[dict]) -> str:
    """Write rows as CSV; None is a missing value."""
    names = list(rows[0])
    lines = [",".join(names)]
    for row in rows:
        values = ["" if row[name] is None else str(row[name]) for name in names]
        lines.append(",".join('"' + v.replace('"', '""') + '"' if v else "" for v in values))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def lines_of(path: Path, rows: list[dict]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def people(count: int = 12) -> list[dict]:
    """Nodes with string ids, every kind of column and some gaps."""
    return [
        {
            "id": f"p {n}'s \"id\" é", "age": None if n == 3 else 20 + n,
            "town": ["Rome", "Oslo", None][n % 3], "vip": ["true", "false"][n % 2],
            "kind": ["cat", "dog"][n % 2], "fold": ["train", "val", "test"][n % 3],
            "year": 2000 + n // 2,
        }
        for n in range(count)
    ]  # fmt: skip


def pairs(rows: list[dict], edges: list[tuple[int, int]]) -> list[dict]:
    return [{"source": rows[a]["id"], "target": rows[b]["id"]} for a, b in edges]


RING = [(n, (n + 1) % 12) for n in range(12)]


def imported(folder: Path, rows: list[dict], edges: list[dict], **more) -> tuple[Graph, dict]:
    """Import tables; `edge_`, `node_` and other settings go where they belong."""
    of_edges = {k.removeprefix("edge_"): v for k, v in more.items() if k.startswith("edge_")}
    of_nodes = {k.removeprefix("node_"): v for k, v in more.items() if k.startswith("node_")}
    rest = {k: v for k, v in more.items() if not k.startswith(("edge_", "node_"))}
    write = csv_of if rest.pop("form", "csv") == "csv" else lines_of
    ending = "csv" if write is csv_of else "jsonl"
    nodes = (write(folder / f"nodes.{ending}", rows),) if rows else ()
    request = Request(
        edges=EdgeTable(files=(write(folder / f"edges.{ending}", edges),), **of_edges),
        nodes=NodeTable(files=nodes, **of_nodes),
        **rest,
    )
    report = import_tables(request, folder / "graph", memory=MEMORY)
    return load(folder / "graph"), report
