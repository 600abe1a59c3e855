"""Finds out how a network of PyG passes messages, from a few passes over small graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.errors import InputError
from graphfm.pyg.calls import Call, joined, parts_of, shape_only
from graphfm.pyg.cut import Cut
from graphfm.pyg.given import CallModel, run
from graphfm.pyg.guards import in_mode, uncached
from graphfm.pyg.kinds import find_kinds
from graphfm.pyg.notes import Notes
from graphfm.pyg.watching import Place, watching

PASSES = 4  # in training mode, to find dropout
LEAST_REACH = 8  # hops that are told apart, also of a network without convolutions


@dataclass(frozen=True)
class Findings:
    """What a probe has found out about a network."""

    cuts: tuple[Cut, ...]  # propagations by depth, then in the order of the calls
    calls: Mapping[Place, Call]
    norms: Mapping[Place, int]  # depth of the rows of each batch norm of nodes
    num_hops: int  # how far away the nodes are that an output depends on
    out_width: int
    noisy: bool  # training drops values at random
    problems: tuple[str, ...] = ()  # why rows depend on other nodes than in-neighbours
    apart: tuple[str, ...] = ()  # why it must have a subgraph to itself: edges that it changes, say


class Probe:
    """Runs a network on a path, with and without a mark on one node, and on a small ring."""

    def __init__(
        self, net: nn.Module, call: CallModel, width: int, data: Mapping[str, Tensor]
    ) -> None:
        self.net, self.call, self.width, self.data = net, call, width, data

    def __call__(self) -> Findings:
        """Examine the network; it stays as it is."""
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(0)
            return self._examine()

    def _examine(self) -> Findings:
        first = self._run(*_path(2))
        reach = max(len(first.aggregates) + 2, LEAST_REACH)  # more hops than the network has
        edges, size = _path(reach)
        x = torch.rand(size, self.width)
        before, out = self._noted(x, edges)
        after, marked = self._noted(x.index_fill(0, torch.tensor([reach]), float("nan")), edges)
        depths, problems = _Depths(reach), list[str]()
        if not torch.equal(out, self._noted(x, edges)[1]):
            problems.append("its outputs are random in evaluation, too")
        num_hops = depths(out, marked, "the output", problems)
        for place, rows in before.normed.items():
            if rows.size(0) == size:  # others are of edges
                depths.norms[place] = depths(rows, after.normed[place], place.name, problems)
        for place in before.repeated:
            problems.append(f"{place.name} aggregates several times in one hop (decomposed_layers)")
        for place, rows in before.aggregates.items():
            if rows.size(0) != size:
                problems.append(
                    f"{place.name} passes messages between other nodes than the graph's"
                )
        training = self._run(*_path(2), training=True)
        calls, cuts = self._calls(before, after, training, depths, problems)
        find_kinds(self.net, cuts, before, self.data, self._pass)
        apart = [
            f"{place.name} is given other edges than the network"
            for place, made in training.entered.items() if not _edges_in(training, made)
        ]  # fmt: skip
        num_hops = max([num_hops, *[cut.depth + 1 for cut in cuts]])
        if {cut.depth for cut in cuts} != set(range(num_hops)):
            apart.append("messages are passed outside of MessagePassing modules")
        if problems:  # then depths mean nothing
            num_hops = max(len(cuts), 1)
            for number, cut in enumerate(cuts):
                cut.depth = number
        return Findings(
            tuple(cuts), calls, depths.norms, num_hops, out.size(1), self._is_noisy(),
            tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(apart)),
        )  # fmt: skip

    def _calls(
        self, before: Notes, after: Notes, training: Notes, depths: _Depths, problems: list[str]
    ) -> tuple[dict[Place, Call], list[Cut]]:
        """The calls of convolutions and the propagations in them, by depth."""
        hops = defaultdict[Place, list[Place]](list)
        for place in before.aggregates:
            hops[Place(place.module, place.call)].append(place)
        calls, cuts = dict[Place, Call](), list[Cut]()
        for place, arguments in before.entered.items():
            depth = {
                name: depths(joined(arguments, [name]), joined(after.entered[place], [name]),
                             place.name, problems)
                for name, value in arguments.items() if before.is_rows(value)
            }  # fmt: skip
            inner = {
                hop: {
                    name: depths(joined(made, [name]), joined(after.propagated[hop], [name]),
                                 place.name, problems)
                    for name, value in made.items() if before.is_rows(value)
                }
                for hop in hops[place] for made in [before.propagated[hop]]
            }  # fmt: skip
            own = max(depth.values(), default=0)
            last = max([max(found.values(), default=0) for found in inner.values()], default=own)
            calls[place] = call = _call(before, training, place, depth, own, max(last, own))
            for hop, found in inner.items():
                cuts.append(_cut(before, hop, call, depth, found))
        cuts.sort(key=lambda cut: cut.depth)  # stable: calls of one depth stay in order
        for cut, above in pairwise(cuts):
            cut.out_width = above.deep_width  # what a history of outputs keeps for the next one
        return calls, cuts

    def _is_noisy(self) -> bool:
        edges, size = _path(16)
        x = torch.rand(size, self.width)
        outputs = [self._noted(x, edges, training=True)[1] for _ in range(PASSES)]
        return any(not torch.equal(outputs[0], other) for other in outputs[1:])

    def _run(self, edges: Tensor, size: int, training: bool = False) -> Notes:
        return self._noted(torch.rand(size, self.width), edges, training=training)[0]

    def _noted(self, x: Tensor, edges: Tensor, *, training: bool = False) -> tuple[Notes, Tensor]:
        some = torch.arange(edges.size(1))
        data = {name: values[some % values.size(0)] for name, values in self.data.items()}
        notes = Notes(x, edges, data)
        return notes, self._pass(notes, training=training)

    def _pass(self, notes: Notes, *, training: bool = False) -> Tensor:
        with (
            in_mode(self.net, training, batch_statistics=training),
            uncached(self.net),
            watching(self.net, notes),
        ):
            try:
                return run(self.net, self.call, notes.x, notes.edge_index, notes.data)
            except InputError:
                raise
            except Exception as error:
                name, reason = type(self.net).__name__, " ".join(str(error).split())[:300]
                size, width = notes.x.shape
                hint = (
                    "; if it should not get the data of edges, say so: call=lambda net, batch: "
                    "net(batch.x, batch.edge_index)"
                )
                raise InputError(
                    f"{name} is examined on small graphs, and fails on one of {size} nodes with "
                    f"{width} features: {type(error).__name__}: {reason}"
                    f"{hint if self.data else ''} "
                    "(rows for the nodes of one graph, such as an nn.Embedding, are "
                    "node_features='learned' here)"
                ) from error


class _Depths:
    """How many hops a mark travels until it reaches some rows."""

    def __init__(self, reach: int) -> None:
        self.reach, self.norms = reach, dict[Place, int]()

    def __call__(self, before: Tensor, after: Tensor, name: str, problems: list[str]) -> int:
        if before.shape != after.shape:
            problems.append(f"{name} chooses nodes by their rows, as pooling does")
            return 0
        differs = (before != after).flatten(1).any(1).nonzero().flatten() - self.reach
        if not differs.numel():
            return 0
        first, last = int(differs.min()), int(differs.max())
        if first < 0 or last >= self.reach:
            problems.append(
                f"{name} depends on nodes that no edge leads from: a norm over all nodes, "
                "attention between all of them, or messages against the direction of edges"
            )
        return max(last, 0)


def _path(reach: int) -> tuple[Tensor, int]:
    """Edges of a path whose middle is node `reach`, a second path, and the number of nodes."""
    n = 2 * reach + 1
    ends = torch.cat([torch.arange(n - 1), torch.tensor([n, n + 1])])
    edges = torch.stack([ends, ends + 1])
    # A median needs a neighbour of the first node.
    return torch.cat([torch.tensor([[1], [0]]), edges], 1), n + 3


def _edges_in(notes: Notes, arguments: Mapping[str, Any]) -> str | None:
    """The argument that is the edges which the network was given."""
    return next((name for name, value in arguments.items() if value is notes.edge_index), None)


def _call(
    notes: Notes, training: Notes, place: Place, depth: Mapping[str, int], own: int, last: int
) -> Call:
    arguments = notes.entered[place]
    edges, num_edges = _edges_in(notes, arguments), notes.edge_index.size(1)
    tensors = {n: v for n, v in arguments.items() if isinstance(v, Tensor) and n != edges}
    per_edge = {
        name: next((known for known, own in notes.data.items() if own is value), None)
        for name, value in tensors.items()
        if name not in depth and value.dim() > 0 and value.size(0) == num_edges
    }
    rest = [name for name in tensors if name not in depth and per_edge.get(name) is None]
    later = training.entered.get(place, {})
    rows = [part for name in depth for part in parts_of(later.get(name))]
    raw = len(rows) == 1 and rows[0] is training.x
    return Call(
        place=place, depth=own, last_depth=last, edges=edges, per_edge=per_edge,
        rows=tuple(depth), deep=tuple(name for name, hops in depth.items() if hops > 0),
        raw=raw, repeatable=edges is not None and bool(depth) and not rest,
    )  # fmt: skip


def _cut(
    notes: Notes, place: Place, call: Call, depth: Mapping[str, int], found: Mapping[str, int]
) -> Cut:
    own = max(found.values(), default=0)
    inner = own > call.depth
    rows, arguments = call.rows, notes.entered[call.place]
    if inner:
        depth, rows, arguments = found, tuple(found), notes.propagated[place]
    deep = tuple(name for name in rows if depth[name] > 0)
    return Cut(
        place=place, depth=own if inner else call.depth, call=call, inner=inner, rows=rows,
        deep=deep,
        in_width=joined(arguments, rows).size(1) if rows else 0,
        deep_width=joined(arguments, deep).size(1) if deep else 0,
        agg_width=notes.aggregates[place].flatten(1).size(1),
        template={name: shape_only(value) for name, value in notes.entered[call.place].items()},
    )  # fmt: skip
