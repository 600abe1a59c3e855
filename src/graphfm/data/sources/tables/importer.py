"""Makes a graph of a user's tables: beside its folder, in bounded memory, all of it or nothing."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphfm.data.formats.array_file import ArrayFile, map_array, write_array
from graphfm.data.graph import SPLITS
from graphfm.data.graph.labels import labelled, task_of
from graphfm.data.sources.folder_writer import LABEL_TYPES, building, finish
from graphfm.data.sources.mapped_folder import Tell
from graphfm.data.sources.tables.database import ROWS_AT_ONCE, Database, check_column
from graphfm.data.sources.tables.edges import number_edges, read_edges, sort_pairs
from graphfm.data.sources.tables.encodings import Encoding, Features, fit
from graphfm.data.sources.tables.labels import read_labels, read_split, read_targets
from graphfm.data.sources.tables.nodes import count_nodes, id_type, read_nodes, write_ids
from graphfm.data.sources.tables.request import Request
from graphfm.data.sources.tables.table_files import find_files
from graphfm.files import check_room

MEMORY = 2_000_000_000
Array = np.ndarray[Any, Any]
log = logging.getLogger("graphfm")


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
        loops = report.pop("repeated_loops")
        again = (found.duplicates + loops) // 2 if request.edges.undirected else found.duplicates
        report |= {"duplicate_edges": again, "duplicates": request.edges.duplicate_rule}
        report["isolated_nodes"] = isolated
        about |= {"edges": found.num_edges, "raw_edges": report["edge_rows"], "name": out.name}
        about["tables"] = request.kept()
        return finish(folder, about, report)


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
        for key in ("source", "target", "weight"):
            if (name := getattr(edges, key)) is not None:
                check_column(name, list(edge_columns), "edges", f"--{key}")
        types = [edge_columns[name] for name in (edges.source, edges.target)]
        node_columns: dict[str, str] = {}
        if node_files:
            node_sql, node_columns = db.reader(node_files, nodes.delimiter)
            check_column(nodes.id, list(node_columns), "nodes", "--id")
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
        used = {edges.source, edges.target, edges.weight}
        report["unused_edge_columns"] = [name for name in edge_columns if name not in used]
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
    for name in {nodes.label, *nodes.regress} & {*nodes.features}:
        log.warning("%r is a feature and also what is to be predicted; leave the feature out", name)
    encodings = [
        fit(db, name, wanted, f"f{number}", columns[name])
        for number, (name, wanted) in enumerate(nodes.features.items())
    ]
    if encodings:
        _write_features(Features(db, encodings), num_nodes, folder, tell)
    y, classes = np.full(num_nodes, -1, np.int64), list[str]()
    if nodes.regress:
        y = read_targets(db, nodes, columns, num_nodes)
        classes = list(nodes.classes or nodes.regress)
    elif nodes.label is not None:
        y, classes = read_labels(db, nodes, columns[nodes.label], num_nodes)
    split, left = read_split(db, request, y)
    labels = torch.from_numpy(y)
    write_array(folder / "y.npy", LABEL_TYPES[task_of(labels)], y)
    write_array(folder / "split.npy", "|i1", split)
    report |= {
        "unlabelled": num_nodes - int(labelled(labels).sum()),
        "left_the_split": left,
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
    with ArrayFile(folder / "x.npy", "<f4", (features.width,)) as file:
        for rows in features.pieces(num_nodes):
            file.append(rows)
            tell("features", file.num_rows, num_nodes)


def _write_degrees(folder: Path, num_nodes: int) -> None:
    indptr = map_array(folder / "indptr.npy", "<i8", (num_nodes + 1,))
    with ArrayFile(folder / "x.npy", "<f4", (1,)) as file:
        for start in range(0, num_nodes, ROWS_AT_ONCE):
            end = min(start + ROWS_AT_ONCE, num_nodes)
            file.append(degree_features(np.diff(indptr[start : end + 1])))


def degree_features(degree: Array) -> Array:
    """The only feature of a graph without any: log(1 + in-degree)."""
    found: Array = np.log1p(degree).astype(np.float32).reshape(-1, 1)
    return found
