"""New nodes and edges of a user's tables join a graph that `graphfm import` made.

New rows are encoded with the values that were fitted when the graph was imported, and its columns
are expected again; `graph.json` keeps both. The joined graph is in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphfm.data.formats.text_column import ChainedColumn
from graphfm.data.graph import CARRIED, SPLITS, Graph
from graphfm.data.graph.names import node_numbers
from graphfm.data.sources.edge_merge import Merged, merge_edges
from graphfm.data.sources.tables.database import Database, check_column
from graphfm.data.sources.tables.edges import number_edges, pair_type, read_edges
from graphfm.data.sources.tables.encodings import Encoding, Features
from graphfm.data.sources.tables.importer import MEMORY, degree_features
from graphfm.data.sources.tables.new_values import check_new_values, kept_encodings
from graphfm.data.sources.tables.nodes import MOST_NODES, count_nodes, read_nodes
from graphfm.data.sources.tables.request import EdgeTable, Request, joining_request
from graphfm.data.sources.tables.table_files import find_files
from graphfm.errors import InputError, counted
from graphfm.memory import available_memory

Array = np.ndarray[Any, Any]
TEXT = "VARCHAR"  # the type in which ids are compared
STALE = (
    "report",
    "edge_summary",
    "node_summary",
)  # what `meta` says of a graph without the new nodes
log = logging.getLogger("graphfm")


def join_tables(
    graph: Graph, nodes: Sequence[str], edges: Sequence[str] = (), *, memory: int = MEMORY
) -> Graph:
    """Return the graph with the new nodes after its own, and with the new edges.

    Edges join ids of the graph and of the new nodes, and mean what they meant in the import: they
    are undirected, weighted and treated as duplicates likewise. New nodes have no labels and are
    in no split. In a graph whose only feature is the in-degree, it is the one of the joined graph.
    """
    encodings = kept_encodings(graph)
    features = {encoding.column: encoding.encoding for encoding in encodings}
    request = joining_request(_kept_tables(graph), nodes, edges, features)
    node_files, edge_files = find_files(request.nodes.files), find_files(request.edges.files)
    with TemporaryDirectory(prefix="graphfm-") as folder:
        scratch = Path(folder)
        db = Database(scratch, [*edge_files, *node_files], memory)
        try:
            ids, x = _read_nodes(db, request, node_files, encodings)
            if edge_files:
                relation, columns = db.reader(edge_files, request.edges.delimiter)
                read_edges(db, request.edges, relation, columns, TEXT)
            numbers = _find_ids(db, graph, ids, bool(edge_files))
            pairs = np.zeros(0, pair_type(request.edges.weight is not None))
            if edge_files:
                number_edges(db, request, scratch / "pairs")
                pairs = np.fromfile(scratch / "pairs", pairs.dtype)
        finally:
            db.close()
    for end in ("s", "t"):
        pairs[end] = numbers[pairs[end]]
    return _joined(graph.to("cpu"), ids, x, pairs, request.edges).to(graph.device)


def _kept_tables(graph: Graph) -> Mapping[str, Any]:
    """The columns that the import used, and what its edges meant."""
    kept = graph.meta.get("tables")
    if isinstance(kept, Mapping):
        return kept
    raise InputError(
        "the graph does not say which tables it was made of (it was not imported, or by an earlier "
        "version); import it again with 'graphfm import' to let new nodes join"
    )


def _read_nodes(
    db: Database, request: Request, files: list[str], encodings: list[Encoding]
) -> tuple[list[str], Array | None]:
    """Make the table `node`; return its ids, and its features unless they are the in-degree."""
    relation, columns = db.reader(files, request.nodes.delimiter)
    check_column(request.nodes.id, list(columns), "nodes")
    read_nodes(db, request, relation, columns, TEXT)
    count = count_nodes(db)
    ids = db.arrays("SELECT id FROM node ORDER BY rowid")["id"].tolist()
    if not encodings:
        return ids, None
    encoded = Features(db, encodings)
    for number, encoding in enumerate(encodings):
        check_new_values(db, encoding, number, columns[encoding.column])
    return ids, np.concatenate(list(encoded.pieces(count)))


def _find_ids(db: Database, graph: Graph, ids: list[str], has_edges: bool) -> Array:
    """Append to the table `node` the ids of the graph that edges name; number each of its rows."""
    wanted = set(ids)
    if has_edges:
        wanted.update(db.arrays("SELECT s AS id FROM edge UNION SELECT t FROM edge")["id"].tolist())
    wanted.discard(None)  # an edge without an id is refused later, with its number
    found = node_numbers(graph, wanted)
    if again := [name for name in ids if name in found]:
        who = counted(len(again), "new node has", "new nodes have")
        raise InputError(
            f"{who} an id that the graph has already, such as {again[0]!r}; give new nodes only "
            "(edges may name old ones)"
        )
    if found:
        db.insert("INSERT INTO node (id)", {"id": np.array(list(found), object)})
    return np.array([*range(graph.num_nodes, graph.num_nodes + len(ids)), *found.values()])


def _joined(graph: Graph, ids: list[str], x: Array | None, pairs: Array, edges: EdgeTable) -> Graph:
    """The graph in memory with the new nodes, their features and their edges."""
    more, total = len(ids), graph.num_nodes + len(ids)
    if total > MOST_NODES:
        raise InputError(f"the joined graph has {total:,} nodes; expected at most {MOST_NODES:,}")
    if graph.num_bytes > (free := available_memory()):
        raise InputError(
            f"the joined graph takes more than {graph.num_bytes:,} bytes of memory, but {free:,} "
            "are available"
        )
    if lost := [name for name in CARRIED if getattr(graph, name) is not None]:
        log.warning("the new edges have no %s, so the joined graph has none", " and ".join(lost))
    merged = _merged(graph, pairs, edges, total)
    if x is None:
        rows = torch.from_numpy(degree_features(np.diff(merged.indptr)))
    else:
        rows = torch.cat([graph.x, torch.from_numpy(x).to(graph.x.dtype)])
    masks: dict[str, Any] = {
        f"{name}_mask": _longer(graph.mask(name), more, False) for name in SPLITS
    }
    assert graph.node_names is not None  # a graph of tables has ids
    return replace(
        graph,
        trusted=True,
        indptr=torch.from_numpy(merged.indptr),
        indices=torch.from_numpy(merged.indices),
        edge_weight=None if merged.weight is None else torch.from_numpy(merged.weight),
        edge_attr=None,
        edge_type=None,
        edge_order=None,
        x=rows,
        y=_longer(graph.y, more, float("nan") if graph.y.is_floating_point() else -1),
        node_names=ChainedColumn(graph.node_names, ids),
        meta={key: value for key, value in graph.meta.items() if key not in STALE},
        **masks,
    )


def _merged(graph: Graph, pairs: Array, edges: EdgeTable, num_nodes: int) -> Merged:
    """The edges of the graph with the new ones, by the rules of the import."""
    back = pairs[pairs["s"] != pairs["t"]] if edges.undirected else pairs[:0]
    merged = merge_edges(
        graph,
        np.concatenate([pairs["s"], back["t"]]),
        np.concatenate([pairs["t"], back["s"]]),
        None if edges.weight is None else np.concatenate([pairs["w"], back["w"]]),
        num_nodes,
        edges.duplicate_rule,
    )
    if edges.duplicates is None and edges.undirected and merged.found.conflicts:
        raise InputError(
            f"{merged.found.conflicts:,} edges occur again with another weight; the import was not "
            "told which counts (--duplicates); leave these edges out"
        )
    return merged


def _longer(values: Tensor, more: int, value: float | bool) -> Tensor:
    """Values of nodes, with one value for all new nodes after them."""
    return torch.cat([values, values.new_full((more, *values.shape[1:]), value)])
