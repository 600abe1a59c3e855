"""Tells sums from means, and from aggregates that normalise over the neighbours they see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import MeanAggregation

from graphfm.data.graph import Graph
from graphfm.pyg.cut import MEAN, OTHER, SUM, Cut
from graphfm.pyg.notes import Notes
from graphfm.pyg.watching import Place, convolutions
from graphfm.pyg.whole_degrees import WholeDegrees

NODES, TARGET = 8, 3
# A ring, and further edges. No set of edges below is as large as the set of nodes.
SOURCES = (7, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 4, 5)
TARGETS = (0, 1, 2, 3, 4, 5, 6, 7, 3, 3, 5, 7, 1)


@dataclass
class Ones(Notes):
    """Gives every propagation rows of ones, and the degrees of the graph around the edges."""

    degrees: WholeDegrees | None = None

    def enter(self, place: Place, arguments: dict[str, Any]) -> None:
        assert self.degrees is not None
        self._fill(arguments)
        weight = self.data.get("edge_weight")
        if not any(value is weight for value in arguments.values()):
            weight = None
        self.degrees.expect(self.edge_index, weight)

    def propagate(self, place: Place, arguments: dict[str, Any]) -> None:
        if place.hop > 1:
            self._fill(arguments)

    def _fill(self, arguments: dict[str, Any]) -> None:
        for name, value in arguments.items():
            if isinstance(value, Tensor) and self.is_rows(value):
                arguments[name] = torch.ones_like(value)


def find_kinds(
    net: nn.Module,
    cuts: Sequence[Cut],
    seen: Notes,
    data: Mapping[str, Tensor],
    run: Callable[[Notes], Tensor],
) -> None:
    """Set `kind` and `adds_loops` of each propagation.

    A sum over a target's edges is the sum of those over two parts of them. A mean is PyG's own, of
    all edges that the convolution is given; `seen` is a pass that shows whether it is.
    """
    convs, left, width = convolutions(net), list(cuts), seen.x.size(1)
    examples = min((values.size(0) for values in data.values()), default=1)
    for example in range(examples):  # a propagation may read edges of one type only
        same = {name: values[example] for name, values in data.items()}
        passes = _passes(width, same, run)
        for cut in left:
            if passes[0].aggregates[cut.place].size(0) != NODES:
                continue  # pooling, which is refused
            cut.adds_loops = passes[0].messages[cut.place] > passes[0].edge_index.size(1)
            rows = [notes.aggregates[cut.place][TARGET] for notes in passes]
            if not passes[0].messages[cut.place] or _adds_up(*rows):
                cut.kind = SUM
            elif _is_mean(convs[cut.place.module], cut, seen):
                cut.kind = MEAN
            else:
                cut.kind = OTHER
        left = [cut for cut in left if not passes[0].messages[cut.place]]
        if not left:
            return


def _adds_up(every: Tensor, one: Tensor, other: Tensor, none: Tensor) -> bool:
    """True if each edge adds something: attention gives the same of all edges as of a self-loop."""
    close = partial(torch.allclose, atol=1e-4, rtol=1e-4)
    return close(every + none, one + other) and not close(every, none)


def _is_mean(conv: MessagePassing, cut: Cut, seen: Notes) -> bool:
    own = type(conv).aggregate is MessagePassing.aggregate
    every = seen.messages[cut.place] == seen.edge_index.size(1)
    return own and every and isinstance(conv.aggr_module, MeanAggregation)


def _passes(
    width: int, same: Mapping[str, Tensor], run: Callable[[Notes], Tensor]
) -> tuple[Ones, Ones, Ones, Ones]:
    """Passes with all edges of the target, with two parts of them, and with none.

    All edges have the same data.
    """
    edges = torch.tensor([SOURCES, TARGETS])
    others, own = edges[:, edges[1] != TARGET], edges[:, edges[1] == TARGET]

    def data(number: int) -> dict[str, Any]:
        return {name: one.expand(number, *one.shape).clone() for name, one in same.items()}

    around = Graph.from_edges(edges, torch.zeros(NODES, 1), **data(edges.size(1)))
    degrees = WholeDegrees(around)

    def noted(some: Tensor) -> Ones:
        given = torch.cat([others, some], 1)
        given = given[:, torch.argsort(given[1], stable=True)]  # some aggregations ask for it
        notes = Ones(torch.ones(NODES, width), given, data(given.size(1)), degrees=degrees)
        with degrees(), degrees.of(torch.arange(NODES)):
            run(notes)
        return notes

    return noted(own), noted(own[:, :1]), noted(own[:, 1:]), noted(own[:, :0])
