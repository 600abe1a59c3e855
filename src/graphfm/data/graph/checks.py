"""Everything a user can get wrong about a graph, caught on the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphfm.data.graph.names import check_names
from graphfm.errors import InputError

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

ROWS_AT_ONCE = 1 << 20  # checks of features never copy more rows than this
MOST_CLASSES = 1 << 20  # more are taken for a mistake
WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch computes little on them


def as_tensor(name: str, value: Any) -> Tensor:
    """A detached tensor of numbers, from a tensor, an array or nested lists."""
    if isinstance(value, Tensor) and value.dtype not in WIDE_UNSIGNED:
        if value.layout != torch.strided or value.is_complex():
            kind = f"{str(value.layout).removeprefix('torch.')} {_kind(value)}"
            raise InputError(f"{name} is {kind}; expected a dense tensor of real numbers")
        return value.detach()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not an array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {array.dtype} values; expected numbers")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        if array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise InputError(f"{name} holds {array.max()}, which is too large")
        array = array.astype(np.int64)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return torch.from_numpy(np.require(array, requirements=("C", "W")))


def as_edge_index(value: Any, num_nodes: int) -> Tensor:
    edges = as_tensor("edge_index", value)
    if edges.ndim != 2 or edges.size(0) != 2:
        raise InputError(
            f"edge_index has shape {tuple(edges.shape)}; expected [2, num_edges], sources in row 0 "
            "and targets in row 1" + (" (transpose it)" if edges.shape[-1:] == (2,) else "")
        )
    if edges.numel() == 0:
        return edges.long()
    if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool:
        raise InputError(f"edge_index holds {edges.dtype} values; expected integer node ids")
    edges = edges.long()
    low, high = (int(v) for v in edges.aminmax())
    if low < 0 or high >= num_nodes:
        raise InputError(
            f"edge_index names node {low if low < 0 else high}; x has {num_nodes} rows, "
            f"so ids run from 0 to {num_nodes - 1}"
        )
    return edges


def as_features(value: Any) -> Tensor:
    """Float32, or half precision where it is given so."""
    x = as_tensor("x", value)
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"x has shape {tuple(x.shape)}; expected [num_nodes, num_features], both at least 1"
        )
    return x if x.dtype in (torch.float16, torch.bfloat16) else x.to(torch.float32)


def as_edge_weight(value: Any, num_edges: int) -> Tensor:
    weight = as_tensor("edge_weight", value)
    if weight.shape not in ((num_edges,), (num_edges, 1)):
        raise InputError(
            f"edge_weight has shape {tuple(weight.shape)}; expected [{num_edges}], one per edge"
        )
    return weight.reshape(-1).to(torch.float32)


def as_mask(name: str, value: Any, x: Tensor) -> Tensor:
    num_nodes = x.size(0)
    if value is None:
        return torch.zeros(num_nodes, dtype=torch.bool, device=x.device)
    mask = as_tensor(name, value)
    if mask.shape != (num_nodes,):
        raise InputError(
            f"{name} has shape {tuple(mask.shape)}; expected [{num_nodes}], true or false per node "
            + (
                "(several splits: take one column)"
                if mask.ndim == 2
                else "(of a list of ids: mask = zeros(num_nodes, bool); mask[ids] = True)"
            )
        )
    if mask.dtype != torch.bool and not bool(((mask == 0) | (mask == 1)).all()):
        raise InputError(f"{name} holds values other than 0 and 1; expected true or false per node")
    mask = mask.bool()
    if not bool(mask.any()):
        raise InputError(f"{name} is empty; leave it out, or select at least one node")
    return mask


def as_labels(
    value: Any, x: Tensor, num_classes: int | None, class_names: tuple[str, ...] | None
) -> tuple[Tensor, int]:
    """Labels in their stored type, and the number of classes."""
    num_nodes = x.size(0)
    if num_classes is not None:
        num_classes = _as_count("num_classes", num_classes)
    if num_classes is None and class_names is not None:
        num_classes = len(class_names)
    if value is None:
        return torch.full((num_nodes,), -1, device=x.device), num_classes or 0
    y = as_tensor("y", value)
    if y.shape == (num_nodes, 1):
        y = y.squeeze(1)
    if y.ndim not in (1, 2) or y.size(0) != num_nodes or y.numel() == 0:
        raise InputError(
            f"y has shape {tuple(y.shape)}; expected [{num_nodes}], one class per node, or "
            f"[{num_nodes}, num_classes] of 0 and 1 when a node has many"
        )
    if y.is_floating_point() and not bool(((y == y.round()) & y.isfinite()).all()):
        raise InputError("y holds values that are not whole numbers; expected classes, -1 for none")
    if y.ndim == 1:
        y = y.long()
        if num_classes is None and int(y.max()) >= MOST_CLASSES:
            raise InputError(f"y holds label {int(y.max())}; expected below {MOST_CLASSES}")
        return y, int(y.max()) + 1 if num_classes is None else num_classes
    if y.dtype in (torch.uint8, torch.bool):
        y = y.to(torch.int16)  # -1 is 255 to an unsigned type
    if not bool(((y >= -1) & (y <= 1)).all()):
        raise InputError("multi-label y holds values other than 0 and 1 (and -1 for unlabelled)")
    return y.to(torch.int8), y.size(1) if num_classes is None else num_classes


def check_graph(graph: Graph) -> None:
    """What must hold of any graph, however it was made."""
    _check_structure(graph)
    _check_features(graph.x)
    _check_labels(graph)
    _check_masks(graph)
    check_names("node_names", graph.node_names, graph.num_nodes)
    check_names("class_names", graph.class_names, graph.num_classes)


def _check_structure(graph: Graph) -> None:
    n, indptr, indices = graph.num_nodes, graph.indptr, graph.indices
    if indptr.shape != (n + 1,) or indptr.dtype != torch.int64:
        raise InputError(f"indptr is {_kind(indptr)}; expected int64 [{n + 1}], num_nodes + 1")
    if indices.ndim != 1 or indices.dtype != torch.int32:
        raise InputError(f"indices is {_kind(indices)}; expected int32 [num_edges]")
    if int(indptr[0]) != 0 or int(indptr[-1]) != indices.numel() or bool((indptr.diff() < 0).any()):
        raise InputError("indptr does not rise from 0 to the number of edges; use Graph.from_edges")
    if indices.numel() and (int(indices.min()) < 0 or int(indices.max()) >= n):
        raise InputError(f"indices names nodes outside 0 to {n - 1}")
    weight = graph.edge_weight
    if weight is None:
        return
    if weight.shape != indices.shape or weight.dtype != torch.float32:
        raise InputError(f"edge_weight is {_kind(weight)}; expected float32 [{indices.numel()}]")
    if not bool(((weight >= 1e-30) & (weight <= 1e30)).all()):
        raise InputError("edge_weight holds a value that is not positive, finite, of sane size")


def _check_features(x: Tensor) -> None:
    if x.ndim != 2 or 0 in x.shape or not x.is_floating_point():
        raise InputError(f"x is {_kind(x)}; expected floating point [num_nodes, num_features]")
    for start in range(0, x.size(0), ROWS_AT_ONCE):
        bad = ~torch.isfinite(x[start : start + ROWS_AT_ONCE]).all(dim=1)
        if bool(bad.any()):
            node = start + int(bad.nonzero()[0])
            raise InputError(
                f"x holds NaN or infinite values, the first at node {node}; "
                "replace them (for instance by the column's mean)"
            )


def _check_labels(graph: Graph) -> None:
    y, n = graph.y, graph.num_nodes
    if graph.multi_label:
        if y.shape != (n, graph.num_classes) or y.dtype != torch.int8:
            raise InputError(f"y is {_kind(y)}; expected int8 [{n}, {graph.num_classes}]")
        missing = (y < 0).sum(dim=1)
        if bool(((missing > 0) & (missing < graph.num_classes)).any()):
            raise InputError("a row of y mixes -1 with labels; an unlabelled node is -1 throughout")
        return
    if y.shape != (n,) or y.dtype != torch.int64:
        raise InputError(f"y is {_kind(y)}; expected int64 [{n}]")
    low, high = (int(v) for v in y.aminmax())
    if low < -1 or high >= graph.num_classes:
        raise InputError(
            f"y holds label {low if low < -1 else high}; expected 0 to {graph.num_classes - 1}, "
            "or -1 for unlabelled"
        )


def _check_masks(graph: Graph) -> None:
    masks = {name: getattr(graph, name) for name in ("train_mask", "val_mask", "test_mask")}
    labelled = graph.y >= 0
    labelled = labelled.all(dim=1) if graph.multi_label else labelled
    for name, mask in masks.items():
        if mask.shape != (graph.num_nodes,) or mask.dtype != torch.bool:
            raise InputError(f"{name} is {_kind(mask)}; expected bool [{graph.num_nodes}]")
        if graph.num_classes == 0 and bool(mask.any()):
            raise InputError(f"there is a {name} but no y; give labels, or leave the mask out")
        if count := int((mask & ~labelled).sum()):
            raise InputError(f"{name} selects {count} nodes without a label; take them out of it")
    for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
        if count := int((masks[f"{one}_mask"] & masks[f"{other}_mask"]).sum()):
            raise InputError(
                f"{one}_mask and {other}_mask overlap in {count} nodes; a node is in one split only"
            )


def _as_count(name: str, value: Any) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 0 <= value <= MOST_CLASSES:
        raise InputError(f"{name} is {value!r}; expected a whole number, 0 to {MOST_CLASSES}")
    return int(value)


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def as_type(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Features in another floating-point type, all of them still finite."""
    changed = x.to(dtype)
    if x.numel() and not bool(changed.isfinite().all()):
        raise InputError(
            f"a feature of {float(x.abs().max()):.3g} is more than {dtype} holds "
            f"({torch.finfo(dtype).max:.3g}); use --features bf16, or standardise the features"
        )
    return changed
