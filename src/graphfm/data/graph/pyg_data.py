"""Graphs from and to PyG's `Data`.

A graph stores types of its own, so `meta["pyg"]` keeps the types and shapes that `to_pyg` restores.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphfm.data.graph.edge_list import in_given_order
from graphfm.data.graph.graph_file import warn_unused
from graphfm.errors import InputError, needs

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

MASKS = ("train_mask", "val_mask", "test_mask")
OF_EDGES = ("edge_weight", "edge_attr", "edge_type")
NAMES = ("node_names", "class_names")
OPTIONAL = ("y", *MASKS, *OF_EDGES, *NAMES)
USUAL: Mapping[str, tuple[torch.dtype, ...]] = {  # types that a graph leaves as they are
    "x": (torch.float32, torch.float16, torch.bfloat16),
    "y": (torch.int64,),
    **dict.fromkeys(MASKS, (torch.bool,)),
    "edge_weight": (torch.float32,),
    "edge_type": (torch.int64,),
}
STORED = tuple(USUAL)
ROWS_AT_ONCE = 1 << 16
log = logging.getLogger("graphfm")
EXPECTED = "expected a homogeneous Data with x (or num_nodes) and edge_index (or adj_t)"


def arguments(data: Any) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`."""
    keys = set(data.keys()) if callable(getattr(data, "keys", None)) else set()
    found = {key: getattr(data, key, None) for key in ("x", "edge_index", "adj_t", *OPTIONAL)}
    found["num_nodes"] = data.num_nodes if "num_nodes" in keys and found["x"] is None else None
    if found["x"] is None and found["num_nodes"] is None:
        raise InputError(f"the PyG data has no x and no num_nodes; {EXPECTED}")
    matrix = found.pop("adj_t")
    if found["edge_index"] is None:
        if matrix is None:
            raise InputError(f"the PyG data has no edge_index and no adj_t; {EXPECTED}")
        found |= _edges_of(matrix, found)
    elif matrix is not None:
        raise InputError("the PyG data has both edge_index and adj_t; delete one of them")
    unused = keys - {"x", "edge_index", "adj_t", "num_nodes", *OPTIONAL}
    warn_unused("the PyG data", sorted(unused))
    _warn_of_rounding(found)
    return {**found, "meta": _given_types(found)}


def data_of(graph: Graph) -> Any:
    """Return the `Data`; what the graph does not have is left out."""
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise needs("to_pyg", "torch_geometric") from None
    order = graph.edge_order
    rows = torch.stack([graph.indices.long(), graph.targets().long()], dim=1)
    found: dict[str, Any] = {"edge_index": in_given_order(order, rows).T.contiguous()}
    found |= {"x": graph.x} if graph.num_features else {"num_nodes": graph.num_nodes}
    found |= {"y": graph.y} if graph.num_classes else {}
    found |= {name: getattr(graph, name) for name in MASKS if bool(getattr(graph, name).any())}
    for name in OF_EDGES:
        values = getattr(graph, name)
        if values is not None:
            found[name] = in_given_order(order, values)
    for name in NAMES:
        names = getattr(graph, name)
        if names is not None:
            found[name] = list(names)
    return Data(**_with_types(found, graph.meta.get("pyg")))


def _edges_of(matrix: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """Read `adj_t`, whose rows are targets: a SparseTensor, or a sparse tensor of torch."""
    if isinstance(matrix, Tensor):
        target, source, value = _coordinates(matrix)
    elif callable(getattr(matrix, "coo", None)):
        target, source, value = matrix.coo()
    else:
        raise InputError(
            f"adj_t is a {type(matrix).__name__}; expected a SparseTensor or a sparse torch tensor"
        )
    edges: dict[str, Any] = {"edge_index": torch.stack([source, target])}
    if value is None or bool((value == 1).all()):
        return edges
    name = "edge_weight" if value.ndim == 1 else "edge_attr"
    if found[name] is not None:
        raise InputError(f"the PyG data has {name} and values in adj_t; delete one of them")
    return {**edges, name: value}


def _coordinates(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns and values of a sparse tensor; duplicates are not merged."""
    if matrix.layout == torch.sparse_coo:
        row, col = matrix._indices()
        return row, col, matrix._values()
    if matrix.layout not in (torch.sparse_csr, torch.sparse_csc):
        raise InputError("adj_t is a dense tensor; expected a sparse one (or give edge_index)")
    rows_first = matrix.layout == torch.sparse_csr
    first = matrix.crow_indices() if rows_first else matrix.ccol_indices()
    inner = matrix.col_indices() if rows_first else matrix.row_indices()
    outer = torch.arange(first.numel() - 1, device=first.device).repeat_interleave(first.diff())
    row, col = (outer, inner) if rows_first else (inner, outer)
    return row.long(), col.long(), matrix.values()


def _warn_of_rounding(found: Mapping[str, Any]) -> None:
    """Name what a graph, which stores float32, cannot give back exactly."""
    rounded = []
    for name in ("x", "y", "edge_weight"):
        value = found[name]
        if not isinstance(value, Tensor) or value.dtype in USUAL[name] or value.is_sparse:
            continue
        if name == "y" and not value.is_floating_point():
            continue  # classes stay whole numbers
        pieces = (piece[~piece.isnan()] for piece in torch.split(value, ROWS_AT_ONCE))
        if not all(torch.equal(piece.float().to(piece.dtype), piece) for piece in pieces):
            rounded.append(f"{name} ({str(value.dtype).removeprefix('torch.')})")
    if rounded:
        log.warning(
            "the PyG data: %s: some values are rounded to float32, which a graph stores",
            ", ".join(rounded),
        )


def _given_types(found: Mapping[str, Any]) -> dict[str, Any]:
    """What is not as a graph stores it: types by name, and columns that become lists."""
    tensors = {name: found[name] for name in STORED if isinstance(found[name], Tensor)}
    columns = [n for n in ("y", "edge_weight") if n in tensors and tensors[n].shape[1:] == (1,)]
    kinds = {
        name: str(tensor.dtype).removeprefix("torch.")
        for name, tensor in tensors.items()
        if tensor.dtype not in USUAL[name] or (name == "y" and tensor.ndim == 2)
    }
    record: dict[str, Any] = {"types": kinds, "columns": columns} if kinds or columns else {}
    y = tensors.get("y")
    if y is not None and bool(y.isnan().any()):  # classes have -1 instead
        record["nan"] = True
    return {"pyg": record} if record else {}


def _with_types(found: dict[str, Any], given: Any) -> dict[str, Any]:
    """Restore the types; `given` may come from a file, so nothing in it is believed."""
    record = given if isinstance(given, Mapping) else {}
    kinds, columns, y = record.get("types"), record.get("columns"), found.get("y")
    if y is not None and not y.is_floating_point() and record.get("nan") is True:
        found["y"] = torch.where(y < 0, float("nan"), y.double())
    for name in STORED:
        kind = getattr(torch, str(kinds.get(name)), None) if isinstance(kinds, Mapping) else None
        if name in found and isinstance(kind, torch.dtype):
            found[name] = found[name].to(kind)
        if name in found and isinstance(columns, list) and name in columns:
            found[name] = found[name].reshape(-1, 1)
    return found
