"""MatrixMarket files: a square sparse matrix, whose entry [u, v] is an edge from u to v."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.graph.sparse_matrix import weights
from graphfm.data.sources.foreign.number_text import (
    as_ids,
    check_sizes,
    first_line,
    opened,
    rows,
    whole_numbers,
)
from graphfm.errors import InputError

COLUMNS = {"pattern": 2, "integer": 3, "real": 3, "double": 3}
SYMMETRIES = ("general", "symmetric")
COMMENTS = b"%"


def read_matrix_market(path: Path) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`; a symmetric matrix has each edge both ways."""
    with opened(path) as stream:
        field, symmetry = _header(stream.readline(1000))
        num_rows, num_columns, count = whole_numbers(first_line(stream, COMMENTS), 3, 3)
        if num_rows != num_columns:
            raise InputError(
                f"the matrix is {num_rows} x {num_columns}; expected a square one, because rows "
                "and columns are the same nodes"
            )
        check_sizes(num_rows, count)
        table = rows(stream, COMMENTS, COLUMNS[field])
        if len(table) != count:
            raise InputError(f"it has {len(table):,} entries; expected {count:,}, as it declares")
        edges = as_ids(table[:, :2], 1, num_rows)
    weight = table[:, 2] if table.shape[1] == 3 else None
    if symmetry == "symmetric":
        twice = edges[:, 0] != edges[:, 1]  # the diagonal is there once
        edges = np.concatenate([edges, edges[twice][:, ::-1]])
        weight = None if weight is None else np.concatenate([weight, weight[twice]])
    return {
        "edge_index": edges.T,
        "num_nodes": num_rows,
        "edge_weight": None if weight is None else weights(weight),
    }


def _header(line: bytes) -> tuple[str, str]:
    words = line.decode("ascii", "replace").lower().split()
    if words[:1] != ["%%matrixmarket"]:
        raise InputError("it does not begin with %%MatrixMarket; expected a MatrixMarket file")
    if words[1:3] != ["matrix", "coordinate"]:
        raise InputError(f"it holds a {' '.join(words[1:3])}; expected a matrix of coordinates")
    field, symmetry = (*words[3:5], "", "")[:2]
    if field not in COLUMNS or symmetry not in SYMMETRIES:
        raise InputError(
            f"its header has {' '.join(words[3:5]) or 'nothing'} after coordinate; expected "
            f"{' or '.join(COLUMNS)}, then {' or '.join(SYMMETRIES)}"
        )
    return field, symmetry
