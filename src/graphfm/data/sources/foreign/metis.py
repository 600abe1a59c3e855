"""METIS graph files: a line per node with its neighbours, counted from 1."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.graph.sparse_matrix import weights
from graphfm.data.sources.foreign.number_text import (
    Numbers,
    as_ids,
    check_memory,
    first_line,
    numbers,
    opened,
    pieces,
    whole_numbers,
)
from graphfm.errors import InputError

COMMENTS = b"%"
MOST_WEIGHTS = 1 << 10  # of a node
log = logging.getLogger("graphfm")


def read_metis(path: Path) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`. Weights of nodes are not used."""
    with opened(path) as stream:
        header = whole_numbers(first_line(stream, COMMENTS), 2, 4)
        num_nodes, num_edges = header[:2]
        if not num_nodes:
            raise InputError("its header declares no nodes; expected at least one")
        prefix, weighted = _form(header[2:])
        found: list[Numbers] = []
        line = total = 0
        for text in pieces(stream, COMMENTS):
            piece = numbers(text)
            found.append(piece._replace(lines=piece.lines + line))
            line, total = line + piece.num_lines, total + len(piece.values)
            check_memory(total)
        values = np.concatenate([np.zeros(0), *(piece.values for piece in found)])
        lines = np.concatenate([np.zeros(0, np.int64), *(piece.lines for piece in found)])
        if line < num_nodes or (lines >= num_nodes).any():
            raise InputError(
                f"it has {line:,} lines of nodes; expected {num_nodes:,}, as its header declares "
                "(the line of a node without neighbours is empty)"
            )
        if prefix:
            log.warning("%s: the weights and sizes of nodes are not used", path)
        nodes, near, weight = _parts(values, lines, num_nodes, prefix, weighted)
        if len(near) != 2 * num_edges:
            raise InputError(
                f"it lists {len(near):,} neighbours; expected {2 * num_edges:,}, twice the edges "
                "that its header declares"
            )
        sources = as_ids(near, 1, num_nodes)
    edges = np.stack([sources, nodes])
    return {"edge_index": edges, "num_nodes": num_nodes, "edge_weight": weight}


def _form(rest: list[int]) -> tuple[int, bool]:
    """How many numbers stand before the neighbours of a node, and whether edges have weights."""
    form = f"{rest[0] if rest else 0:03d}"
    if set(form) - set("01") or len(form) > 3:
        raise InputError(f"its header has the form {form}; expected three digits of 0 and 1")
    num_weights = rest[1] if len(rest) > 1 else 1
    if num_weights > MOST_WEIGHTS:
        raise InputError(f"it declares {num_weights:,} weights per node; at most {MOST_WEIGHTS}")
    return (form[0] == "1") + (form[1] == "1") * num_weights, form[2] == "1"


def _parts(
    values: Any, lines: Any, num_nodes: int, prefix: int, weighted: bool
) -> tuple[Any, Any, Any]:
    """The node of each edge, its neighbour and the edge's weight."""
    counts = np.bincount(lines, minlength=num_nodes)
    wrong = (counts < prefix) | (weighted & ((counts - prefix) % 2 > 0))
    if wrong.any():
        node = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"node {node + 1} has {counts[node]} numbers; expected {prefix} of its own"
            + (", and a weight after each neighbour" if weighted else "")
        )
    place = np.arange(len(values)) - (np.cumsum(counts) - counts)[lines] - prefix
    step = 2 if weighted else 1
    is_neighbour = (place >= 0) & (place % step == 0)
    weight = weights(values[(place >= 0) & (place % 2 == 1)]) if weighted else None
    return lines[is_neighbour], values[is_neighbour], weight
