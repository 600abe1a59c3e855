"""Makes a graph of a user's tables: beside its folder, in bounded memory, all of it or nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.formats.array_file import ArrayFile, map_array, write_array
from graphfm.data.formats.text_column import as_text_arrays
from graphfm.data.graph import SPLITS, Graph
from graphfm.data.graph.summary import node_summary
from graphfm.data.sources.edge_summary import edge_summary
from graphfm.data.sources.mapped_folder import Tell, extend_record, open_graph, write_record
from graphfm.data.sources.tables.database import ROWS_AT_ONCE, Database, check_column, find_files
from graphfm.data.sources.tables.edges import number_edges, read_edges, sort_pairs
from graphfm.data.sources.tables.encodings import Encoding, Features, fit
from graphfm.data.sources.tables.labels import read_labels, read_split
from graphfm.data.sources.tables.nodes import count_nodes, id_type, read_nodes, write_ids
from graphfm.data.sources.tables.request import Request
from graphfm.errors import InputError
from graphfm.files import check_room, folder_for, sole_user

MEMORY = 2_000_000_000


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """Give a folder to build in, which becomes `out` if the block ends without an error.

    What a killed import left there is removed.
    """
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} exists already; choose another --out, or remove it")
    unfinished = out.parent / f".{out.name}.unfinished"
    with _made(unfinished), sole_user(unfinished):
        try:
            for path in unfinished.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield unfinished
            os.rename(unfinished, out)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder and its parents; parents that stay empty are removed at the end."""
    with ExitStack() as stack:
        try:
            stack.enter_context(folder_for(folder))
        except OSError as error:
            raise InputError(f"cannot make {folder.parent}: {error.strerror or error}") from None
        yield


def import_tables(
    request: Request,
    out: Path,
    *,
    memory: int = MEMORY,
    tell: Tell = lambda what, done, total: None,
) -> dict[str, Any]:
    """Make the graph in the folder `out`; return what was found in the tables."""
    edge_files = find_files(request.edges.files)
    node_files = find_files(request.nodes.files) if request.nodes.files else []
    with building(out) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        read = _read_tables(request, edge_files, node_files, folder, memory, tell)
        report, num_nodes, about = read
        pairs = scratch / "pairs"
        total = pairs.stat().st_size // (12 if request.edges.weight else 8)
        total *= 2 if request.edges.undirected else 1
        found, isolated = sort_pairs(
            pairs, num_nodes, request.edges, folder, lambda done: tell("edges", done, total)
        )
        shutil.rmtree(scratch)
        if not request.nodes.features:
            _write_degrees(folder, num_nodes)
        report |= {"duplicate_edges": found.duplicates, "isolated_nodes": isolated}
        about |= {"edges": found.num_edges, "raw_edges": report["edge_rows"], "name": out.name}
        return finish(folder, about, report)


def finish(folder: Path, about: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Describe the arrays in a folder, with all that `graphfm info` says; return the report."""
    write_record(folder, about)  # so that it can be opened
    graph = open_graph(folder)
    summary = edge_summary(graph)
    report = {
        **report,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "self_loops": summary["self_loops"],
        "splits": about["splits"],
    }
    kept = {"edge_summary": summary, "node_summary": node_summary(graph)}
    extend_record(folder, {**kept, "report": report})
    return report


def _read_tables(
    request: Request,
    edge_files: list[str],
    node_files: list[str],
    folder: Path,
    memory: int,
    tell: Tell,
) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Write everything of the nodes, and the pairs of the edges; return what was found."""
    scratch, edges, nodes = folder / "scratch", request.edges, request.nodes
    db = Database(scratch, [*edge_files, *node_files], memory)
    try:
        tell("reading tables", 0, 4)
        edge_sql, edge_columns = db.reader(edge_files, edges.delimiter)
        ends = [edges.source, edges.target]
        for name in ends:
            check_column(name, list(edge_columns), "edges")
        types = [edge_columns[name] for name in ends]
        node_columns: dict[str, str] = {}
        if node_files:
            node_sql, node_columns = db.reader(node_files, nodes.delimiter)
            check_column(nodes.id, list(node_columns), "nodes")
            types.append(node_columns[nodes.id])
        kind = id_type(types)
        read_edges(db, edges, edge_sql, edge_columns, kind)
        tell("reading tables", 1, 4)
        if node_files:
            report = read_nodes(db, request, node_sql, node_columns, kind)
        else:
            report = {"node_rows": 0}
            db.run(f"CREATE TABLE node (id {kind})")
        tell("reading tables", 2, 4)
        report |= number_edges(db, request, scratch / "pairs")
        tell("reading tables", 3, 4)
        num_nodes = count_nodes(db)
        write_ids(db, kind, folder)
        about = _write_nodes(db, request, node_columns, num_nodes, folder, report, tell)
        tell("reading tables", 4, 4)
        return report, num_nodes, about
    finally:
        db.close()


def _write_nodes(
    db: Database,
    request: Request,
    columns: dict[str, str],
    num_nodes: int,
    folder: Path,
    report: dict[str, Any],
    tell: Tell,
) -> dict[str, Any]:
    """Write features, labels and split; return what `graph.json` says of them."""
    nodes = request.nodes
    encodings = [
        fit(db, name, wanted, f"f{number}", columns[name])
        for number, (name, wanted) in enumerate(nodes.features.items())
    ]
    if encodings:
        _write_features(Features(db, encodings), num_nodes, folder, tell)
    y, classes = np.full(num_nodes, -1, np.int64), list[str]()
    if nodes.label is not None:
        y, classes = read_labels(db, nodes, columns[nodes.label], num_nodes)
    split, left = read_split(db, request, y)
    write_array(folder / "y.npy", "|i1" if y.ndim == 2 else "<i8", y)
    write_array(folder / "split.npy", "|i1", split)
    counts = (y > 0).sum(axis=0) if y.ndim == 2 else np.bincount(y[y >= 0], minlength=len(classes))
    unlabelled = (y < 0).all(axis=1) if y.ndim == 2 else y < 0
    report |= {
        "unlabelled": int(unlabelled.sum()),
        "left_the_split": left,
        "classes": dict(zip(classes, counts.tolist(), strict=True)),
        "features": [_shown(encoding) for encoding in encodings],
    }
    return {
        "classes": len(classes),
        "class_names": classes or None,
        "splits": {name: int((split == part).sum()) for part, name in enumerate(SPLITS)},
        "encodings": [encoding.to_json() for encoding in encodings],
    }


def _shown(encoding: Encoding) -> dict[str, Any]:
    keys = ("column", "encoding", "width", "missing")
    return {key: getattr(encoding, key) for key in keys}


def _write_features(features: Features, num_nodes: int, folder: Path, tell: Tell) -> None:
    check_room(folder, 4 * num_nodes * features.width)
    at_once = max(1, min(ROWS_AT_ONCE, (1 << 22) // features.width))
    with ArrayFile(folder / "x.npy", "<f4", (features.width,)) as file:
        for start in range(0, num_nodes, at_once):
            with np.errstate(over="ignore"):  # infinite features are refused below
                rows = features.rows(start, min(start + at_once, num_nodes)).astype(np.float32)
            bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(bad):
                row = start + int(bad[0])
                raise InputError(f"row {row} of the nodes has a feature that is NaN or too large")
            file.append(rows)
            tell("features", file.num_rows, num_nodes)


def _write_degrees(folder: Path, num_nodes: int) -> None:
    """The features of a graph without any: log(1 + in-degree)."""
    indptr = map_array(folder / "indptr.npy", "<i8", (num_nodes + 1,))
    with ArrayFile(folder / "x.npy", "<f4", (1,)) as file:
        for start in range(0, num_nodes, ROWS_AT_ONCE):
            end = min(start + ROWS_AT_ONCE, num_nodes)
            file.append(np.log1p(np.diff(indptr[start : end + 1])).reshape(-1, 1))


def import_graph(graph: Graph, out: Path) -> dict[str, Any]:
    """Write a graph that is in memory as a folder of mapped arrays."""
    with building(out) as folder:
        arrays = {"indptr": graph.indptr, "indices": graph.indices, "x": graph.x.float()}
        if graph.edge_weight is not None:
            arrays["edge_weight"] = graph.edge_weight
        types = {"indptr": "<i8", "indices": "<i4", "x": "<f4", "edge_weight": "<f4"}
        for name, tensor in arrays.items():
            write_array(folder / f"{name}.npy", types[name], tensor.numpy())
        write_array(folder / "y.npy", "|i1" if graph.multi_label else "<i8", graph.y.numpy())
        split = np.full(graph.num_nodes, -1, np.int8)
        for part, name in enumerate(SPLITS):
            split[graph.mask(name).numpy()] = part
        write_array(folder / "split.npy", "|i1", split)
        if graph.node_names is not None:
            offsets, content = as_text_arrays(graph.node_names)
            write_array(folder / "id_offsets.npy", "<i8", offsets)
            write_array(folder / "id_bytes.npy", "|u1", content)
        about = {
            "name": out.name, "edges": graph.num_edges, "raw_edges": graph.num_edges,
            "classes": graph.num_classes,
            "class_names": None if graph.class_names is None else list(graph.class_names),
            "splits": {name: int((split == part).sum()) for part, name in enumerate(SPLITS)},
        }  # fmt: skip
        return finish(folder, about, {"meta": dict(graph.meta)})
