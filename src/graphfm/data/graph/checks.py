"""What must hold for every graph: structure, features, labels, splits and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphfm.data.graph.conversion import describe
from graphfm.data.graph.labels import check_labels, labelled
from graphfm.data.graph.names import check_names
from graphfm.errors import InputError

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

ROWS_AT_ONCE = 1 << 20  # features are checked in chunks of this many rows


def check_graph(graph: Graph) -> None:
    """Check what must hold for every graph, whoever built it."""
    _check_structure(graph)
    _check_edge_data(graph)
    _check_features(graph.x)
    check_labels(graph)
    _check_masks(graph)
    check_names("node_names", graph.node_names, graph.num_nodes)
    check_names("class_names", graph.class_names, graph.num_classes)


def _check_structure(graph: Graph) -> None:
    n, indptr, indices = graph.num_nodes, graph.indptr, graph.indices
    if indptr.shape != (n + 1,) or indptr.dtype != torch.int64:
        raise InputError(f"indptr is {describe(indptr)}; expected int64 [{n + 1}], num_nodes + 1")
    if indices.ndim != 1 or indices.dtype != torch.int32:
        raise InputError(f"indices is {describe(indices)}; expected int32 [num_edges]")
    if int(indptr[0]) != 0 or int(indptr[-1]) != indices.numel() or bool((indptr.diff() < 0).any()):
        raise InputError("indptr does not rise from 0 to num_edges; build it with Graph.from_edges")
    if indices.numel() and (int(indices.min()) < 0 or int(indices.max()) >= n):
        raise InputError(f"indices holds node ids outside 0 to {n - 1}")
    weight = graph.edge_weight
    if weight is None:
        return
    if weight.shape != indices.shape or weight.dtype != torch.float32:
        raise InputError(f"edge_weight is {describe(weight)}; expected float32 [{indices.numel()}]")
    if bool((wrong := ~((weight >= 1e-30) & (weight <= 1e30))).any()):
        raise InputError(
            f"edge_weight holds {float(weight[wrong][0]):g}; expected positive numbers, 1e-30 to "
            "1e30; remove edges of weight 0, and give others a positive weight"
        )


def _check_edge_data(graph: Graph) -> None:
    count = graph.num_edges
    for name in ("edge_attr", "edge_type", "edge_order"):
        values: Tensor | None = getattr(graph, name)
        if values is not None and (values.ndim == 0 or values.size(0) != count):
            raise InputError(f"{name} is {describe(values)}; expected [{count}], one per edge")
    kind = graph.edge_type
    if kind is not None and (kind.ndim != 1 or kind.dtype != torch.int64):
        raise InputError(f"edge_type is {describe(kind)}; expected int64 [{count}]")


def _check_features(x: Tensor) -> None:
    if x.ndim != 2 or x.size(0) == 0 or not x.is_floating_point():
        raise InputError(f"x is {describe(x)}; expected floating point [num_nodes, num_features]")
    for start in range(0, x.size(0), ROWS_AT_ONCE):
        bad = ~torch.isfinite(x[start : start + ROWS_AT_ONCE]).all(dim=1)
        if bool(bad.any()):
            node = start + int(bad.nonzero()[0])
            raise InputError(
                f"x holds NaN or infinite values, the first at node {node}; "
                "replace them (for instance with the mean of the column)"
            )


def _check_masks(graph: Graph) -> None:
    masks = {name: getattr(graph, name) for name in ("train_mask", "val_mask", "test_mask")}
    has_label = labelled(graph.y)
    for name, mask in masks.items():
        if mask.shape != (graph.num_nodes,) or mask.dtype != torch.bool:
            raise InputError(f"{name} is {describe(mask)}; expected bool [{graph.num_nodes}]")
        if graph.num_classes == 0 and bool(mask.any()):
            raise InputError(f"{name} is given without y; give labels, or leave the mask out")
        if count := int((mask & ~has_label).sum()):
            raise InputError(f"{name} selects {count} nodes without a label; unselect them")
    for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
        if count := int((masks[f"{one}_mask"] & masks[f"{other}_mask"]).sum()):
            raise InputError(
                f"{one}_mask and {other}_mask share {count} nodes; a node may be in one split only"
            )
