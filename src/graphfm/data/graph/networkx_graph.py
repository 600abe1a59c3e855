"""Graphs from and to networkx, whose attributes of nodes and edges are read like columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphfm.data.graph import tables
from graphfm.data.graph.columns import listed
from graphfm.data.graph.labels import labelled
from graphfm.errors import InputError, needs
from graphfm.metrics.names import CLASSES, REGRESSION

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

EDGE_DEFAULTS = ("edge_attr", "edge_type")  # what `graph_of` writes
OF_LABELS = ("class_names", "num_classes", "task")  # attributes of the graph itself, likewise


class Wanted(NamedTuple):
    """Names of attributes."""

    weight: str | None
    kind: str | None
    edge_features: tuple[str, ...]
    label: str | None
    split: str | None
    features: tuple[str, ...] | None
    task: str | None


def arguments(graph: Any, wanted: Wanted) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`."""
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        raise InputError(f"from_networkx got a {type(graph).__name__}; expected a networkx graph")
    place = {node: number for number, node in enumerate(graph.nodes)}
    if not place:
        raise InputError("the networkx graph has no nodes; expected at least one")
    columns = _columns("nodes", [data for _, data in graph.nodes(data=True)])
    found = _of_nodes(graph, columns, wanted)
    edges = [(place[u], place[v], data) for u, v, data in graph.edges(data=True)]
    if not graph.is_directed():
        edges += [(v, u, data) for u, v, data in edges if u != v]
    columns = _columns("edges", [data for *_, data in edges])
    kept = {name: name for name in EDGE_DEFAULTS if name in columns}
    of_edges = tables.EdgeColumns(
        "", "", _if_there(wanted.weight, columns, "weight"),
        wanted.kind or kept.get("edge_type"),
        wanted.edge_features or tuple(n for n in ("edge_attr",) if n in kept),
    )  # fmt: skip
    found |= tables.edge_arguments(tables.Table("edges", columns), of_edges)
    ends = np.array([(u, v) for u, v, _ in edges], np.int64).reshape(-1, 2).T
    found |= {"edge_index": ends, "num_nodes": len(place)}
    if list(place) != list(range(len(place))):
        found["node_names"] = [str(node) for node in place]
    return found


def _of_nodes(graph: Any, columns: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    """Features, labels and splits, and what the graph's own attributes say of its labels."""
    known = {name: graph.graph[name] for name in OF_LABELS if name in graph.graph}
    classes = known.get("class_names", known.get("num_classes"))
    about = tables.NodeColumns(
        "", _if_there(wanted.label, columns, "y"), _if_there(wanted.split, columns, "split"),
        wanted.features, wanted.task or known.get("task"), classes,
    )  # fmt: skip
    found = tables.node_arguments(tables.Table("nodes", columns), about)
    return known | found if about.label is not None else found


def graph_of(graph: Graph) -> Any:
    """Return a `DiGraph`, or a `MultiDiGraph` if edges are duplicated."""
    try:
        import networkx as nx
    except ImportError:
        raise needs("to_networkx", "networkx") from None
    names: Any = graph.node_names
    if names is None or len(set(names)) < graph.num_nodes:
        names = range(graph.num_nodes)
    source, target = graph.edge_index.tolist()
    doubled = len(set(zip(source, target, strict=True))) < graph.num_edges
    made = nx.MultiDiGraph() if doubled else nx.DiGraph()
    if graph.class_names is not None:
        made.graph["class_names"] = [*graph.class_names]
    elif graph.num_classes:
        made.graph["num_classes"] = graph.num_classes
    if graph.task == REGRESSION:
        made.graph["task"] = REGRESSION
    made.add_nodes_from(zip(names, _node_attributes(graph), strict=True))
    values = {"weight": graph.edge_weight, **{n: getattr(graph, n) for n in EDGE_DEFAULTS}}
    lists = {name: value.tolist() for name, value in values.items() if value is not None}
    for number, (u, v) in enumerate(zip(source, target, strict=True)):
        made.add_edge(names[u], names[v], **{name: lists[name][number] for name in lists})
    return made


def _node_attributes(graph: Graph) -> list[dict[str, Any]]:
    attributes: list[dict[str, Any]] = [{} for _ in range(graph.num_nodes)]
    if graph.num_features:
        for own, row in zip(attributes, graph.x.tolist(), strict=True):
            own["x"] = row
    if graph.num_classes:
        names = graph.class_names if graph.task == CLASSES else None
        nodes = labelled(graph.y).nonzero().squeeze(1)  # a node without `y` has no label
        for node, label in zip(nodes.tolist(), graph.y[nodes].tolist(), strict=True):
            attributes[node]["y"] = label if names is None else names[label]
    for split in ("train", "val", "test"):
        for node in graph.mask(split).nonzero().squeeze(1).tolist():
            attributes[node]["split"] = split
    return attributes


def _columns(what: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes as columns; a row without an attribute has None there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise InputError(f"attributes of {what} are named {listed(wrong)}; expected text")
    columns: dict[str, Any] = {}
    for name in names:
        columns[name] = np.empty(len(rows), object)
        for place, row in enumerate(rows):
            columns[name][place] = row.get(name)
    return columns


def _if_there(name: str | None, columns: dict[str, Any], default: str) -> str | None:
    """A default that nobody has is left out; a name that was asked for is not."""
    return None if name == default and name not in columns else name
