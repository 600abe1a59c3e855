"""Degrees of the whole graph for convolutions that see only a part of it.

`gcn_norm` and `degree` of PyG count the edges they are given. While a batch is processed, both are
replaced, wherever a module has imported them, by versions that look the degrees up. So is torch's
`checkpoint`, which would compute convolutions again when the batch is gone.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint as torch_checkpoint
from torch_geometric.nn.conv.gcn_conv import gcn_norm as pyg_gcn_norm
from torch_geometric.utils import add_remaining_self_loops
from torch_geometric.utils import degree as pyg_degree

from graphfm.data.graph import Graph


class WholeDegrees:
    """The degrees of a graph, by node id, for the rows that are processed at the moment."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.norms = dict[Any, tuple[Tensor, Tensor]]()  # by the form of the norm
        self.degrees = dict[tuple[int, bool], Tensor]()
        self.ids: Tensor | None = None  # node ids of the rows; None: the edges given are all
        self.given: Tensor | None = None  # edges that the network was given
        self.edges: Tensor | None = None  # those that a convolution was given
        self.weight: Tensor | None = None  # weights of these edges, if they are the graph's own
        found = [module for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
        self.places = [
            (module, name, ours)
            for name, theirs, ours in self._replacements()
            for module in found
            if vars(module).get(name) is theirs
        ]

    def _replacements(self) -> list[tuple[str, Any, Callable[..., Any]]]:
        return [
            ("gcn_norm", pyg_gcn_norm, self.gcn_norm),
            ("degree", pyg_degree, self.degree),
            ("checkpoint", torch_checkpoint, _at_once),
        ]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Replace the functions inside the block."""
        before = [(module, name, getattr(module, name)) for module, name, _ in self.places]
        try:
            for module, name, ours in self.places:
                setattr(module, name, ours)
            yield
        finally:
            for module, name, theirs in before:
                setattr(module, name, theirs)

    @contextmanager
    def of(self, ids: Tensor | None, given: Tensor | None = None) -> Iterator[None]:
        """Process rows of these nodes inside the block, along the edges that are given."""
        before = self.ids, self.given, self.edges, self.weight
        self.ids, self.given, self.edges, self.weight = ids, given, None, None
        try:
            yield
        finally:
            self.ids, self.given, self.edges, self.weight = before

    def expect(self, edge_index: Tensor, weight: Tensor | None) -> None:
        """Note the edges of the convolution that runs next."""
        self.edges, self.weight = edge_index, weight

    def gcn_norm(
        self,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        improved: bool = False,
        add_self_loops: bool = True,
        flow: str = "source_to_target",
        dtype: torch.dtype | None = None,
    ) -> Any:
        """`gcn_norm` with the degrees of the whole graph."""
        own = edge_weight is None or (self.weight is not None and edge_weight is self.weight)
        if not own or flow != "source_to_target" or not self._are_mine(num_nodes):
            return pyg_gcn_norm(
                edge_index, edge_weight, num_nodes, improved, add_self_loops, flow, dtype
            )
        assert self.ids is not None
        fill = 2.0 if improved else 1.0
        if add_self_loops:
            edge_index, edge_weight = add_remaining_self_loops(
                edge_index, edge_weight, fill, num_nodes
            )
        if edge_weight is None:
            edge_weight = torch.ones(edge_index.size(1), device=edge_index.device)
        roots, loops = self._norm(self.weight is not None, fill if add_self_loops else 0.0)
        if add_self_loops:  # PyG puts them last; one that was not sampled still has its weight
            edge_weight = torch.cat([edge_weight[: -self.ids.numel()], loops[self.ids]])
        root = roots[self.ids]
        return edge_index, root[edge_index[0]] * edge_weight * root[edge_index[1]]

    def degree(
        self, index: Tensor, num_nodes: int | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        """`degree` of the targets, or sources, in the whole graph; other counts stay PyG's."""
        found = self._whole_degree(index) if self._are_mine(num_nodes) else None
        if found is None:
            theirs: Tensor = pyg_degree(index, num_nodes, dtype)
            return theirs
        return found.to(dtype or torch.get_default_dtype())

    def _are_mine(self, num_nodes: int | None) -> bool:
        return self.ids is not None and num_nodes == self.ids.numel()

    def _whole_degree(self, index: Tensor) -> Tensor | None:
        """The degrees that `index` counts for known edges; None if it is another list.

        A convolution may have removed self-loops, and added one for each row at the end.
        """
        if index.dim() != 1 or self.ids is None:
            return None
        loops = torch.arange(self.ids.numel(), device=index.device)
        known = [edges for edges in (self.edges, self.given) if edges is not None]
        for edges, end, proper in product(known, (1, 0), (False, True)):
            ends = edges[end][edges[0] != edges[1]] if proper else edges[end]
            rest = index[ends.numel() :]
            same = torch.equal(index[: ends.numel()], ends)
            if same and (not rest.numel() or torch.equal(rest, loops)):
                return self._degree(end, proper).index_select(0, self.ids) + int(rest.numel() > 0)
        return None

    def _degree(self, end: int, proper: bool) -> Tensor:
        """[num_nodes] edges into each node (`end` is 1) or out of it, without loops if `proper`."""
        key = end, proper
        if key not in self.degrees:
            edges = self.graph.edge_index
            ends = edges[end][edges[0] != edges[1]] if proper else edges[end]
            self.degrees[key] = torch.bincount(ends, minlength=self.graph.num_nodes)
        return self.degrees[key]

    def _norm(self, weighted: bool, fill: float) -> tuple[Tensor, Tensor]:
        """[num_nodes] degree^(-1/2), and the weight of each node's self-loop.

        With `fill` each node has one loop: of weight `fill`, or the last of its own.
        """
        key = weighted, fill
        if key not in self.norms:
            graph = self.graph
            if not weighted:  # all loops are of weight 1, whatever `fill` is
                graph, fill = replace(graph, edge_weight=None, trusted=True), min(fill, 1.0)
            total, loops = graph.weighted_degree, torch.full_like(graph.weighted_degree, fill)
            if fill and graph.edge_weight is not None:
                own = graph.targets() == graph.indices
                loops[graph.indices[own].long()] = graph.edge_weight[own]
            if fill:
                total = total - graph.loop_weight + loops
            root = total.pow(-0.5)
            self.norms[key] = root.masked_fill(root == float("inf"), 0.0), loops
        return self.norms[key]


def _at_once(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """`checkpoint` that keeps what it computes."""
    own = inspect.signature(torch_checkpoint).parameters
    return function(*args, **{name: value for name, value in options.items() if name not in own})
