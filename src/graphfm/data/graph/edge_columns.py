"""What kind of data the edges of a graph have, without the edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphfm.errors import InputError

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

NAMES = ("edge_weight", "edge_attr", "edge_type")
EXAMPLES = 64
EdgeColumns = Mapping[str, Mapping[str, Any]]  # shape, type and largest whole number, by name


def edge_columns(graph: Graph) -> dict[str, dict[str, Any]]:
    """Describe the weights, attributes and types of a graph's edges, as JSON values."""
    found = dict[str, dict[str, Any]]()
    for name in NAMES:
        values: Tensor | None = getattr(graph, name)
        if values is not None:
            whole = not values.is_floating_point() and values.numel() > 0
            most = int(values.max()) if whole and values.dtype != torch.bool else 1
            kind = str(values.dtype).removeprefix("torch.")
            found[name] = {"shape": list(values.shape[1:]), "dtype": kind, "most": most}
    return found


def examples(columns: EdgeColumns) -> dict[str, Tensor]:
    """A few values of each kind: random numbers, or whole numbers up to the largest."""
    rng, found = torch.Generator().manual_seed(0), dict[str, Tensor]()
    for name, column in columns.items():
        kind, shape = getattr(torch, column["dtype"], None), [EXAMPLES, *column["shape"]]
        if not isinstance(kind, torch.dtype) or name not in NAMES:
            raise InputError(f"the data of edges has a column {name} of type {column['dtype']}")
        if kind.is_floating_point:
            found[name] = (torch.rand(shape, generator=rng, device="cpu") + 0.5).to(kind)
        else:
            most = max(int(column["most"]), 0)
            numbers = torch.arange(EXAMPLES, device="cpu") % (most + 1)
            rows = numbers.view(-1, *[1] * len(column["shape"])).expand(shape)
            found[name] = rows.to(kind).contiguous()
    return found
