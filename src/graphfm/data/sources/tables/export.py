"""Writes a graph as tables: nodes, edges, and the TOML file that imports them again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.graph import SPLITS, Graph
from graphfm.data.matrix.chunks import ranges
from graphfm.data.sources.tables.database import Database, literal
from graphfm.data.sources.tables.importer import MEMORY, building
from graphfm.errors import known_name

FORMATS = ("parquet", "csv")
EDGES_AT_ONCE = 1 << 20
NUMBERS_AT_ONCE = 1 << 21
FEATURES = "x"


def export_tables(graph: Graph, out: Path, kind: str = "parquet", memory: int = MEMORY) -> None:
    """Write the folder `out` with the tables nodes and edges, and `graph.toml`."""
    known_name("format", kind, FORMATS)
    graph = graph.to("cpu")
    with building(out) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        db = Database(scratch, [str((folder / f"{n}.{kind}").resolve()) for n in TABLES], memory)
        try:
            for name, pieces in (("nodes", _nodes(graph)), ("edges", _edges(graph))):
                write_table(db, name, pieces, folder.resolve() / f"{name}.{kind}", kind)
        finally:
            db.close()
        for path in sorted(scratch.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        scratch.rmdir()
        (folder / "graph.toml").write_text(_toml(graph, kind), encoding="utf-8")


TABLES = ("nodes", "edges")


def write_table(
    db: Database, name: str, pieces: Iterator[dict[str, Any]], path: Path, kind: str
) -> None:
    """Write pieces of a table, which are arrays by the name of their column, to one file."""
    for number, columns in enumerate(pieces):
        made = f"INSERT INTO {name}" if number else f"CREATE TABLE {name} AS"
        db.insert(made, columns)
    options = "FORMAT parquet" if kind == "parquet" else "FORMAT csv, HEADER"
    db.run(f"COPY {name} TO {literal(str(path))} ({options})")
    db.run(f"DROP TABLE {name}")


def _nodes(graph: Graph) -> Iterator[dict[str, Any]]:
    """Pieces of the table of nodes. Many labels of a node are joined by their separator."""
    n, width = graph.num_nodes, graph.num_features
    classes = _classes(graph)
    at_once = max(1, min(1 << 17, NUMBERS_AT_ONCE // width))
    parts = [*SPLITS, None]
    for start in range(0, n, at_once):
        end = min(start + at_once, n)
        names = graph.node_names
        ids = np.arange(start, end) if names is None else _texts(names[start:end])
        columns: dict[str, Any] = {"id": ids}
        if graph.num_classes:
            columns["label"] = _labels(graph, classes, start, end)
        split = np.full(end - start, len(SPLITS))
        for part, name in enumerate(SPLITS):
            split[graph.mask(name)[start:end].numpy()] = part
        columns["split"] = _texts(parts[part] for part in split)
        x = graph.x[start:end].float().numpy()
        columns |= {f"{FEATURES}{number}": np.array(x[:, number]) for number in range(width)}
        yield columns


def _labels(graph: Graph, classes: list[str], start: int, end: int) -> Any:
    y = graph.y[start:end].numpy()
    if not graph.multi_label:
        return _texts([classes[label] if label >= 0 else None for label in y.tolist()])
    mark = _separator(classes)  # alone it means that a node has none of the labels
    return _texts(
        [
            None if row[0] < 0 else mark.join(
                name for name, own in zip(classes, row, strict=True) if own
            ) or mark
            for row in y.tolist()
        ]
    )  # fmt: skip


def _texts(values: Any) -> Any:
    return np.array(list(values), dtype=object)


def _classes(graph: Graph) -> list[str]:
    return list(graph.class_names or [str(number) for number in range(graph.num_classes)])


def _separator(classes: list[str]) -> str:
    """A separator that is in no name of a class."""
    return next(mark for mark in ("|", ";", "\t", "\x1f") if not any(mark in c for c in classes))


def _edges(graph: Graph) -> Iterator[dict[str, Any]]:
    indptr, names = graph.indptr.numpy(), graph.node_names
    for start, end in ranges(graph.indptr, 1 << 17, EDGES_AT_ONCE):
        first, last = int(indptr[start]), int(indptr[end])
        sources = graph.indices[first:last].numpy()
        targets = np.repeat(np.arange(start, end), np.diff(indptr[start : end + 1]))
        columns: dict[str, Any] = {}
        for name, ids in (("source", sources), ("target", targets)):
            columns[name] = ids if names is None else _texts(names[int(i)] for i in ids)
        if graph.edge_weight is not None:
            columns["weight"] = graph.edge_weight[first:last].numpy()
        yield columns


def _quoted(text: str) -> str:
    """A text as TOML writes it: like JSON, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(graph: Graph, kind: str) -> str:
    """The file for `graphfm import` that gives the same graph again."""
    weight = ', weight = "weight"' if graph.edge_weight is not None else ""
    lines = [
        f'edges = {{ files = "edges.{kind}", source = "source", target = "target"{weight} }}',
        "[nodes]",
        f'files = "nodes.{kind}"',
        'id = "id"',
    ]
    classes = _classes(graph)
    if classes:
        lines += ['label = "label"', f"classes = [{', '.join(_quoted(name) for name in classes)}]"]
    if graph.multi_label:
        lines.append(f"label_separator = {_quoted(_separator(classes))}")
    if any(bool(graph.mask(name).any()) for name in SPLITS):
        lines.append('split = "split"')
    lines.append("[nodes.features]")
    lines += [f'{FEATURES}{number} = "as-is"' for number in range(graph.num_features)]
    return "\n".join(lines) + "\n"
