"""Plain lists of edges: a line per edge with source and target, and perhaps a weight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.graph.sparse_matrix import weights
from graphfm.data.sources.foreign.number_text import as_ids, opened, rows
from graphfm.errors import InputError

COMMENTS = b"#%/"


def read_edge_text(path: Path) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`.

    The nodes are the ids that occur. If they are not 0, 1, 2... they become names.
    """
    with opened(path) as stream:
        table = rows(stream, COMMENTS)
        if table.shape[1] not in (2, 3):
            raise InputError(
                f"a line has {table.shape[1]} numbers; expected source, target and perhaps a "
                "weight (Graph.from_dataframe reads tables)"
            )
        if not len(table):
            raise InputError("it has no edges; expected a line per edge, with source and target")
        known, edges = np.unique(as_ids(table[:, :2], 0), return_inverse=True)
    found: dict[str, Any] = {"edge_index": edges.reshape(-1, 2).T, "num_nodes": len(known)}
    if known[-1] != len(known) - 1:
        found["node_names"] = [str(node) for node in known.tolist()]
    if table.shape[1] == 3:
        found["edge_weight"] = weights(table[:, 2])
    return found
