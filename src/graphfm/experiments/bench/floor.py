"""The memory-bandwidth floor: bytes that a step must move, counted from shapes.

We count what must be read from or written to memory, however well the kernels are written. What a
step produces and uses at once is not counted if it fits into a cache. `benchmarks/README.md`
explains every line.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import torch

from graphfm.data.graph import Graph
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.runs.run import Run
from graphfm.training.plan_step import plan_step
from graphfm.training.settings import NUMBER_TYPES

FLOAT = 4  # bytes of a number in arithmetic
OFFSETS = 16  # where the neighbours of a node begin and end
ID = 4  # of a neighbour
SEED = 16  # of a training node: its id, its label
PER_WEIGHT = 8 * FLOAT  # a weight, its gradient and Adam's two moments, each read and written
SAMPLED = ("graphsage", "graphfm-ib")  # few rows: they stay in a cache between layers
SPILLED = ("full", "gas", "graphfm-ob", "graphfm-delta")  # too many rows for a cache
COUNTED = {"sage": SAMPLED, "gcn": SPILLED}  # by network


@dataclass(frozen=True)
class StepBytes:
    """The bytes of one step, by purpose."""

    structure: float = 0  # ids, offsets, labels
    features: float = 0  # rows of features, and of their precomputed aggregates
    histories: float = 0  # rows read and written
    hidden: float = 0  # hidden rows and their gradients, where they do not stay in a cache
    weights: float = 0  # weights, gradients and Adam's moments

    @property
    def total(self) -> float:
        return self.structure + self.features + self.histories + self.hidden + self.weights

    def __add__(self, other: StepBytes) -> StepBytes:
        names = [item.name for item in fields(self)]
        return StepBytes(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True)
class Reach:
    """How far the edges of a step on parts of a graph lead, which shapes do not tell."""

    halo: float  # nodes outside that the parts read
    cut: float  # edges from there


@dataclass(frozen=True)
class _Widths:
    """The widths of one layer, and how its rows are made."""

    into: int
    out: int
    depth: int
    known: bool  # whether its aggregate is computed before training
    last: bool


def step_bytes(run: Run, graph: Graph, reach: Reach = Reach(0, 0)) -> StepBytes | None:
    """The bytes that a step of `run` must move; None for methods that are not counted here."""
    if run.method not in COUNTED.get(run.backbone, ()):
        return None
    settings, method, size = run.backbone_settings, run.new_method(), GraphSize.of(graph)
    with torch.device("meta"):
        network = run.new_backbone(graph.num_features, graph.num_classes, graph.num_nodes)
    plan = plan_step(size, graph.device, network, method, run.training)
    rows = [graph.num_features, *[settings["hidden"]] * (settings["layers"] - 1), graph.num_classes]
    last = len(rows) - 2
    widths = [
        _Widths(into, out, depth, plan.exact_first_hop and depth == 0, depth == last)
        for depth, (into, out) in enumerate(pairwise(rows))
    ]
    parts = method.sampler.footprint(size, len(widths))
    seeds = parts[-1].targets * SEED
    number = sum(weights.numel() for weights in network.parameters())
    total = StepBytes(structure=seeds, weights=number * PER_WEIGHT)
    for width, part in zip(widths, parts, strict=True):
        if run.method in SAMPLED:
            total += _sampled_layer(run, graph, width, part)
        else:
            total += _spilled_layer(run, graph, width, part.targets, reach)
    return total


def _sampled_layer(run: Run, graph: Graph, width: _Widths, part: LayerFootprint) -> StepBytes:
    """Rows are gathered once, from features or histories; then they are in a cache."""
    number = graph.x.element_size()
    if width.known:  # the aggregate, and the node's own features
        return StepBytes(features=part.targets * width.into * 2 * number)
    first, momentum = width.depth == 0, run.method == "graphfm-ib"
    kept = NUMBER_TYPES[run.training.history].itemsize
    visits = 2 * FLOAT  # how often a node was seen
    return StepBytes(
        structure=part.targets * OFFSETS + part.edges * ID,
        features=part.sources * width.into * number if first else 0.0,
        histories=part.targets * (2 * width.into * kept + visits) if momentum else 0.0,
    )


def _spilled_layer(
    run: Run, graph: Graph, width: _Widths, targets: float, reach: Reach
) -> StepBytes:
    """A row for every edge, forward and backward; every array once for each use."""
    edges = graph.num_edges * targets / graph.num_nodes
    outputs = 2 * targets * width.out * FLOAT  # written; their gradient read
    if width.known:  # read for the output, and again for the weights' gradient
        rows = (2 * targets + reach.halo) * width.into * graph.x.element_size()
        return StepBytes(features=rows, hidden=outputs) + _history(run, width, targets, reach)
    kind = graph.x.element_size() if width.depth == 0 else FLOAT
    gathered = edges * width.into * kind
    aggregates = 3 * targets * width.into * FLOAT  # written; read for the output and the gradient
    structure = targets * OFFSETS + edges * ID
    if width.depth > 0:  # the gradient goes back to the rows of the step
        inside = edges - reach.cut
        aggregates += targets * width.into * FLOAT
        gathered += inside * width.into * FLOAT
        structure += targets * OFFSETS + inside * ID
    first = width.depth == 0
    return StepBytes(
        structure=structure,
        features=gathered if first else 0.0,
        hidden=aggregates + outputs + (0.0 if first else gathered),
    ) + _history(run, width, targets, reach)


def _history(run: Run, width: _Widths, targets: float, reach: Reach) -> StepBytes:
    """The bytes of the halo's rows and of those kept for later steps."""
    kept = NUMBER_TYPES[run.training.history].itemsize
    back = StepBytes(
        structure=reach.halo * OFFSETS + reach.cut * ID, hidden=reach.cut * width.into * FLOAT
    )  # along the edges that lead from the parts to the halo
    if run.method == "gas" and not width.last:
        return StepBytes(histories=targets * width.out * kept)
    if run.method == "graphfm-ob" and not width.last:
        own = StepBytes(histories=targets * width.out * kept)
        if width.known:
            return own
        return own + back + StepBytes(histories=2 * reach.halo * width.out * kept)
    if run.method == "graphfm-delta" and not width.known:  # inputs and their sums, of both
        rows = 2 * targets + targets + 2 * reach.halo
        return back + StepBytes(histories=rows * width.into * kept)
    return StepBytes()
