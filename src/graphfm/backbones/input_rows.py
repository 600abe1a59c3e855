"""The rows that a network reads: a graph's features, standardised, and rows made beside them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from graphfm.data.graph import Graph
from graphfm.data.graph.node_features import KINDS, node_features, width_of
from graphfm.data.graph.standard import fit, rows_at_once
from graphfm.errors import InputError

NONE, LEARNED = "none", "learned"


class InputRows(nn.Module):
    """Makes a network's input rows of a graph: its features first, then rows of its own.

    `kind` says which rows: "degree" and "random" are made of the edges; "learned" are kept here,
    one for each node, and a training moves them (`training.learned_rows`). What was fitted or
    learned is part of the network's state, so it is saved with the weights.
    """

    # In double, because a mean may be large beside the deviation.
    center: Tensor | None  # [num_features] mean of each feature
    scale: Tensor | None  # [num_features] 1 / deviation; 0 for a constant feature
    rows: Tensor | None  # [num_nodes, width] the learned rows

    def __init__(
        self,
        num_features: int,
        num_nodes: int,
        *,
        standardize: bool = False,
        kind: str = NONE,
        width: int = 64,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.kind, self.seed = kind, seed
        self.added = 0 if kind == NONE else width_of(kind, width)
        self.width = num_features + self.added
        for name in ("center", "scale"):
            fitted = torch.zeros(num_features, dtype=torch.float64) if standardize else None
            self.register_buffer(name, fitted)
        self.register_buffer("rows", torch.zeros(num_nodes, width) if kind == LEARNED else None)

    @torch.no_grad()
    def fit(self, graph: Graph) -> None:
        """Fit mean and deviation to all nodes of a graph, and draw the first learned rows."""
        if self.center is not None and self.scale is not None:
            for kept, found in zip((self.center, self.scale), fit(graph.x), strict=True):
                kept.copy_(found)
        if self.rows is not None:
            rng = torch.Generator().manual_seed(self.seed)
            first = torch.randn(self.rows.shape, generator=rng)
            self.rows.copy_(first.div_(math.sqrt(self.added)))  # of length 1, like random rows

    @torch.no_grad()
    def forward(self, graph: Graph) -> Tensor:
        """[num_nodes, width] the rows of all nodes. Features are standardised in chunks."""
        given, kind = graph.num_features, graph.x.dtype
        if self.rows is not None:
            self._check_nodes(graph)
            kind = torch.float32  # small changes must not be lost to rounding
        made = torch.empty(graph.num_nodes, self.width, dtype=kind, device=graph.device)
        chunk = rows_at_once(given)
        for into, x in zip(torch.split(made, chunk), torch.split(graph.x, chunk), strict=True):
            into[:, :given] = self._standard(x)
        if self.rows is not None:
            made[:, given:] = self.rows
        elif self.kind in KINDS:
            made[:, given:] = node_features(graph, self.kind, self.added, self.seed)
        return made

    def _standard(self, x: Tensor) -> Tensor:
        if self.center is None or self.scale is None:
            return x
        return (x.double() - self.center) * self.scale

    def _check_nodes(self, graph: Graph) -> None:
        assert self.rows is not None
        if graph.num_nodes != self.rows.size(0):
            raise InputError(
                f"the model has learned a row for each of {self.rows.size(0):,} nodes, and this "
                f"graph has {graph.num_nodes:,}; learned rows belong to the nodes of the training "
                "graph: for other graphs train with node_features degree, or with features"
            )
