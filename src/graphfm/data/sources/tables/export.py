"""Writes a graph as tables: nodes, edges, and the TOML file that imports them again."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphfm.data.graph import CARRIED, SPLITS, Graph
from graphfm.data.matrix.chunks import ranges
from graphfm.data.sources.folder_writer import building
from graphfm.data.sources.mapped_folder import IMPORTED, IN_META
from graphfm.data.sources.tables.database import Database, literal
from graphfm.data.sources.tables.importer import MEMORY
from graphfm.errors import InputError, known_name
from graphfm.metrics.names import REGRESSION

FORMATS = ("parquet", "csv")
EDGES_AT_ONCE = 1 << 20
NUMBERS_AT_ONCE = 1 << 21
TABLES = ("nodes", "edges")
FEATURES, TARGETS = "x", "y"
log = logging.getLogger("graphfm")


def export_tables(graph: Graph, out: Path, kind: str = "parquet", memory: int = MEMORY) -> None:
    """Write the folder `out` with the tables nodes and edges, and `graph.toml`."""
    known_name("format", kind, FORMATS)
    graph = graph.to("cpu")
    _check(graph, kind)
    with building(out) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        db = Database(scratch, [str((folder / f"{n}.{kind}").resolve()) for n in TABLES], memory)
        try:
            for name, pieces in (("nodes", _nodes(graph)), ("edges", _edges(graph))):
                write_table(db, name, pieces, folder.resolve() / f"{name}.{kind}", kind)
        finally:
            db.close()
        shutil.rmtree(scratch)
        (folder / "graph.toml").write_text(_toml(graph, kind), encoding="utf-8")


def _check(graph: Graph, kind: str) -> None:
    """Refuse labels that tables cannot say, and name what else they have no place for."""
    if graph.multi_label and bool(((graph.y < 0).any(dim=1) & (graph.y >= 0).any(dim=1)).any()):
        raise InputError(
            "some labels of a node are known and others are not, which tables cannot say; keep "
            "such a graph as .npz, or as a folder"
        )
    if "" in _classes(graph) and (kind == "csv" or graph.multi_label):
        raise InputError("a class has an empty name, which means no label in tables; rename it")
    lost = [name for name in CARRIED if getattr(graph, name) is not None]
    if graph.x.dtype != torch.float32:
        lost.append("half precision (features are written in single)")
    if not graph.num_features:
        lost.append("that it has no features (an import adds one, the in-degree)")
    if graph.meta.get("encodings"):
        lost.append("encodings (features are written as encoded)")
    if own := sorted({*graph.meta} - {*IN_META, *IMPORTED}):
        lost.append(f"meta ({', '.join(own)})")
    if lost:
        log.warning("not written, because tables have no place for it: %s", "; ".join(lost))


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
    num_nodes, width = graph.num_nodes, graph.num_features
    classes = _classes(graph)
    at_once = max(1, min(1 << 17, NUMBERS_AT_ONCE // max(width, 1)))
    parts = [*SPLITS, None]
    for start in range(0, num_nodes, at_once):
        end = min(start + at_once, num_nodes)
        names = graph.node_names
        ids = np.arange(start, end) if names is None else _texts(names[start:end])
        columns: dict[str, Any] = {"id": ids}
        if graph.task == REGRESSION:
            y = graph.y[start:end].reshape(end - start, -1).numpy()
            columns |= {f"{TARGETS}{n}": np.array(y[:, n]) for n in range(graph.num_classes)}
        elif graph.num_classes:
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
    marks = (chr(code) for code in (*b"|;\t", *range(0x2500, 0xD800)))
    return next(mark for mark in marks if not any(mark in name for name in classes))


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
    if graph.task == REGRESSION:
        columns = ", ".join(f'"{TARGETS}{number}"' for number in range(graph.num_classes))
        lines.append(f"regress = [{columns}]")
    elif classes:
        lines.append('label = "label"')
    if graph.class_names or (classes and graph.task != REGRESSION):
        lines.append(f"classes = [{', '.join(_quoted(name) for name in classes)}]")
    if graph.multi_label:
        lines.append(f"label_separator = {_quoted(_separator(classes))}")
    if any(bool(graph.mask(name).any()) for name in SPLITS):
        lines.append('split = "split"')
    lines.append("[nodes.features]")
    lines += [f'{FEATURES}{number} = "as-is"' for number in range(graph.num_features)]
    return "\n".join(lines) + "\n"
