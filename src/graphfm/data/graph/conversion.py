"""Converts what a user passes to a graph into tensors, and refuses what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphfm.errors import InputError
from graphfm.memory import available_memory

MOST_NODES = np.iinfo(np.int32).max  # neighbour ids are stored in int32
BYTES_PER_NODE = 48  # of a graph without features, while it is built
MOST_CLASSES = 1 << 20  # more classes than this are a mistake
WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch supports few operations on them


def as_tensor(name: str, value: Any) -> Tensor:
    """Convert a tensor, an array or nested lists to a detached tensor of numbers."""
    if isinstance(value, Tensor) and value.dtype not in WIDE_UNSIGNED:
        if value.layout != torch.strided or value.is_complex():
            layout = str(value.layout).removeprefix("torch.")
            raise InputError(
                f"{name} is {layout} {describe(value)}; expected a dense tensor of real numbers"
            )
        return value.detach()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not an array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {array.dtype} values; expected numbers")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        if array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise InputError(f"{name} holds {array.max()}; expected at most {2**63 - 1}")
        array = array.astype(np.int64)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return torch.from_numpy(np.require(array, requirements=("C", "W")))


def as_edge_index(value: Any, num_nodes: int) -> Tensor:
    """Convert to int64 [2, num_edges]; refuse ids of nodes that do not exist."""
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
            f"edge_index holds node id {low if low < 0 else high}; expected 0 to {num_nodes - 1}, "
            f"because the graph has {num_nodes} nodes"
        )
    return edges


def as_features(value: Any, num_nodes: Any = None, edge_index: Any = None) -> Tensor:
    """Convert to float32 [num_nodes, num_features]; half precision stays as it is.

    None gives a graph without features: a tensor without columns, where the edges are.
    """
    if value is None:
        device = edge_index.device if isinstance(edge_index, Tensor) else None
        return torch.zeros(as_num_nodes(num_nodes), 0, device=device)
    x = as_tensor("x", value)
    if num_nodes is not None and x.shape[:1] != (as_num_nodes(num_nodes),):
        raise InputError(
            f"x has shape {tuple(x.shape)}, but num_nodes is {num_nodes}; leave num_nodes out"
        )
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"x has shape {tuple(x.shape)}; expected [num_nodes, num_features], both at least 1"
        )
    return x if x.dtype in (torch.float16, torch.bfloat16) else x.to(torch.float32)


def as_num_nodes(value: Any) -> int:
    """Refuse a number of nodes that is none, or for which there is no memory."""
    if value is None:
        raise InputError("neither x nor num_nodes is given; give x, the features, or num_nodes")
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 0 < value <= MOST_NODES:
        raise InputError(f"num_nodes is {value!r}; expected a whole number, 1 to {MOST_NODES}")
    if int(value) * BYTES_PER_NODE > (available := available_memory()):
        raise InputError(
            f"a graph of {value:,} nodes takes more memory than the {available:,} bytes available"
        )
    return int(value)


def as_edge_attr(value: Any, num_edges: int) -> Tensor:
    """Check one value or one row of values per edge; their type stays as it is."""
    attr = as_tensor("edge_attr", value)
    if attr.ndim == 0 or attr.size(0) != num_edges:
        raise InputError(
            f"edge_attr has shape {tuple(attr.shape)}; expected [{num_edges}, ...], a row per edge"
        )
    return attr


def as_edge_type(value: Any, num_edges: int) -> Tensor:
    """Convert to int64 [num_edges]."""
    kind = as_tensor("edge_type", value)
    if kind.shape != (num_edges,) or not bool((kind == kind.long()).all()):
        raise InputError(
            f"edge_type is {describe(kind)}; expected whole numbers [{num_edges}], one per edge"
        )
    return kind.long()


def as_edge_weight(value: Any, num_edges: int) -> Tensor:
    """Convert to float32 [num_edges]."""
    weight = as_tensor("edge_weight", value)
    if weight.shape not in ((num_edges,), (num_edges, 1)):
        raise InputError(
            f"edge_weight has shape {tuple(weight.shape)}; expected [{num_edges}], one per edge"
        )
    return weight.reshape(-1).to(torch.float32)


def as_mask(name: str, value: Any, x: Tensor) -> Tensor:
    """Convert to bool [num_nodes]; None selects no node."""
    num_nodes = x.size(0)
    if value is None:
        return torch.zeros(num_nodes, dtype=torch.bool, device=x.device)
    mask = as_tensor(name, value)
    if mask.shape != (num_nodes,):
        raise InputError(
            f"{name} has shape {tuple(mask.shape)}; expected [{num_nodes}], true or false per node "
            + (
                "(if the columns are several splits, take one column)"
                if mask.ndim == 2
                else "(from a list of ids: mask = zeros(num_nodes, bool); mask[ids] = True)"
            )
        )
    if mask.dtype != torch.bool and not bool(((mask == 0) | (mask == 1)).all()):
        raise InputError(f"{name} holds values other than 0 and 1; expected true or false per node")
    mask = mask.bool()
    if not bool(mask.any()):
        raise InputError(f"{name} is empty; leave it out, or select at least one node")
    return mask


def as_type(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert features to another floating-point type; refuse it if a value overflows."""
    changed = x.to(dtype)
    if x.numel() and not bool(changed.isfinite().all()):
        raise InputError(
            f"x holds {float(x.abs().max()):.3g}; {dtype} holds at most "
            f"{torch.finfo(dtype).max:.3g}; use --features bf16, or standardise the features"
        )
    return changed


def describe(tensor: Tensor) -> str:
    """Type and shape of a tensor, for error messages."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def as_count(name: str, value: Any) -> int:
    """A number of classes; refuses anything else."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 0 <= value <= MOST_CLASSES:
        raise InputError(f"{name} is {value!r}; expected a whole number, 0 to {MOST_CLASSES}")
    return int(value)
