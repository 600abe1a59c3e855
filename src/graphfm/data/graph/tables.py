"""Graphs from tables of edges and nodes: pandas, polars, Arrow, or dictionaries of columns.

A table is whatever has named columns that become numpy arrays; no library of tables is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphfm.data.graph.columns import (
    as_ids,
    as_labels,
    as_matrix,
    as_plain,
    holds_numbers,
    is_missing,
    listed,
    positions,
)
from graphfm.data.graph.labels import MASKS
from graphfm.errors import InputError, did_you_mean

Array = np.ndarray[Any, Any]
SPLIT_NAMES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
log = logging.getLogger("graphfm")


class EdgeColumns(NamedTuple):
    """Names of the columns of a table of edges."""

    source: str
    target: str
    weight: str | None
    kind: str | None
    features: tuple[str, ...]


class NodeColumns(NamedTuple):
    """Names of the columns of a table of nodes; without `features`, all that are left.

    `task` and `classes` say what the label means, if that is known.
    """

    id: str
    label: str | None
    split: str | None
    features: tuple[str, ...] | None
    task: str | None = None
    classes: Sequence[str] | int | None = None


def arguments(
    edges: Any, nodes: Any, edge_columns: EdgeColumns, node_columns: NodeColumns
) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`."""
    edge_table = Table("edges", edges)
    ends = [as_ids(f"edges[{n!r}]", edge_table[n]) for n in edge_columns[:2]]
    if nodes is None:
        if ends[0].dtype != ends[1].dtype:
            raise InputError("sources and targets of edges are of different types; make them alike")
        known = np.unique(np.concatenate(ends))
        found: dict[str, Any] = {"x": None}
        if not len(known):
            raise InputError("the table of edges is empty; give a table of nodes too")
    else:
        node_table = Table("nodes", nodes)
        known = as_ids(f"nodes[{node_columns.id!r}]", node_table[node_columns.id])
        if not len(known):
            raise InputError("the table of nodes is empty; expected a row per node")
        found = node_arguments(node_table, node_columns)
    names = zip(edge_columns[:2], ends, strict=True)
    found["edge_index"] = np.stack([positions(f"edges[{n!r}]", ids, known) for n, ids in names])
    found["num_nodes"] = len(known)
    if not (known.dtype == np.int64 and np.array_equal(known, np.arange(len(known)))):
        found["node_names"] = [str(one) for one in known.tolist()]
    return found | edge_arguments(edge_table, edge_columns)


def edge_arguments(table: Table, columns: EdgeColumns) -> dict[str, Any]:
    """Weights, types and attributes of edges; columns without a use are named in a warning."""
    found: dict[str, Any] = {}
    if columns.weight is not None:
        found["edge_weight"] = as_matrix(f"edges[{columns.weight!r}]", table[columns.weight])
    if columns.kind is not None:
        found["edge_type"] = _as_kinds(table, columns.kind)
    if columns.features:
        found["edge_attr"] = _joined(table, columns.features)
    used = {columns.source, columns.target, columns.weight, columns.kind, *columns.features}
    table.warn_unused(used, "name them in edge_features, weight or edge_type to keep them")
    return found


def node_arguments(table: Table, columns: NodeColumns) -> dict[str, Any]:
    """Features, labels and splits of nodes; columns without a use are named in a warning."""
    found: dict[str, Any] = {"x": None, "task": columns.task}
    if columns.label is not None:
        name = f"nodes[{columns.label!r}]"
        found |= as_labels(name, table[columns.label], columns.task, columns.classes)
    used = {columns.id, columns.label, columns.split}
    if columns.split is not None:
        found |= _masks(table[columns.split], columns.split)
    else:
        masks = {name: as_matrix(name, table[name]) for name in MASKS if name in table.names}
        found |= {name: mask for name, mask in masks.items() if mask.any()}
        used |= {*masks}
    features = columns.features
    if features is None:
        left = [name for name in table.names if name not in used | {*MASKS}]
        features = tuple(name for name in left if holds_numbers(table[name]))
    if features:
        found["x"] = _joined(table, features)
    table.warn_unused(used | {*features}, "encode them as numbers to use them as features")
    return found


class Table:
    """Columns by name, of any library's table."""

    def __init__(self, name: str, table: Any) -> None:
        self.name, self.table = name, table
        lazy = hasattr(table, "collect")  # a lazy one of polars
        names = None if lazy else getattr(table, "column_names", None)  # of Arrow
        if names is None and not lazy:
            names = table.keys() if isinstance(table, Mapping) else getattr(table, "columns", None)
        if names is None or callable(names):
            raise InputError(
                f"{name} is a {type(table).__name__}; expected a table of pandas, polars (collect "
                "a lazy one) or Arrow, or a dictionary of columns"
            )
        self.names = list(names)
        self.num_rows: int | None = None  # of the first column that is read

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            near = did_you_mean(str(name), [str(known) for known in self.names])
            raise InputError(
                f"the table of {self.name} has no column {name!r}; it has "
                f"{listed(self.names)}{near}"
            )
        if self.names.count(name) > 1:
            raise InputError(f"the table of {self.name} has two columns {name!r}; rename one")
        column = as_plain(f"{self.name}[{name!r}]", self.table[name])
        if self.num_rows not in (None, len(column)):
            raise InputError(
                f"{self.name}[{name!r}] has {len(column)} rows; expected {self.num_rows}, like the "
                "columns before it"
            )
        self.num_rows = len(column)
        return column

    def warn_unused(self, used: set[str | None], advice: str) -> None:
        """Name the columns that are left, in one warning."""
        if left := [str(name) for name in self.names if name not in used]:
            log.warning("the table of %s: not used: %s; %s", self.name, listed(left), advice)


def _joined(table: Table, names: tuple[str, ...]) -> Array:
    """Several columns of numbers side by side, [num_rows, width]."""
    parts = [as_matrix(f"{table.name}[{name!r}]", table[name]) for name in names]
    parts = [part.reshape(len(part), -1) for part in parts]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _as_kinds(table: Table, name: str) -> Array:
    column = as_ids(f"edges[{name!r}]", table[name])
    if column.dtype == np.int64:
        return column
    kinds, numbers = np.unique(column, return_inverse=True)
    log.warning(
        "edge types are numbered: %s", ", ".join(f"{n} {kind}" for n, kind in enumerate(kinds[:20]))
    )
    return numbers.astype(np.int64)


def _masks(column: Array, name: str) -> dict[str, Array]:
    """Masks from the names of splits; a missing or empty one means no split."""
    values = ["" if is_missing(value) else str(value) for value in column.tolist()]
    known = dict(SPLIT_NAMES, **{"": ""})
    if wrong := sorted({*values} - {*known}):
        raise InputError(
            f"nodes[{name!r}] holds {listed(wrong)}; expected train, val, test or nothing"
        )
    parts = np.array([known[value] for value in values])
    masks = {f"{part}_mask": parts == part for part in ("train", "val", "test")}
    return {name: mask for name, mask in masks.items() if mask.any()}
