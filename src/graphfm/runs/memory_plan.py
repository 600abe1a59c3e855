"""Estimate the memory of a training before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from graphfm.backbones.base import Backbone
from graphfm.backbones.input_rows import LEARNED
from graphfm.data.datasets import known_size
from graphfm.data.graph import Graph
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.chunks import CHUNK_EDGES, CHUNK_NODES
from graphfm.errors import InputError
from graphfm.memory import available_memory, size
from graphfm.methods import Method
from graphfm.step_plan import StepPlan
from graphfm.training.inference import KEPT_BYTES
from graphfm.training.plan_step import plan_step

if TYPE_CHECKING:  # it imports this module
    from graphfm.runs.run import Run

PER_EDGE = 28  # bytes of an edge in a step: CSR and its transpose
PER_EDGE_ONE_WAY = 16  # bytes of an edge without gradients
PER_NODE = 16  # bytes of a node: its degree, factors of the matrix, its position in a batch
PER_SEED = 24  # bytes of a training node: its id, an epoch's order, and the ids in that order
WHOLE_GRAPH = ("refresh_histories", "staleness_every")  # settings that process all nodes at once
MARGIN = 2.0  # factor by which an estimate may be too high


class TooLarge(InputError):  # noqa: N818
    """There is not enough free memory now; a later attempt may succeed."""


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Estimated bytes by use, right within about a factor of two."""

    device: str
    graph: int
    indices: int  # degrees and other numbers per node, and the order of the training nodes
    features: int  # hops or first aggregates, without the graph's own features
    histories: int
    weights: int  # with their gradients and Adam's state
    step: int
    evaluation: int
    free: int
    still_to_come: int = 0  # bytes of the graph that are not loaded yet

    @property
    def available(self) -> int:
        """Bytes that are free once the graph is loaded."""
        return max(self.free - self.still_to_come, 0)

    @property
    def needed(self) -> int:
        """Bytes needed beside the graph: what stays, and the larger of step and evaluation."""
        stays = self.indices + self.features + self.histories + self.weights
        return stays + max(self.step, self.evaluation)

    def __str__(self) -> str:
        parts = {
            "graph": self.graph, "indices": self.indices, "features": self.features,
            "histories": self.histories, "weights": self.weights, "a step": self.step,
            "evaluation": self.evaluation,
        }  # fmt: skip
        listed = ", ".join(f"{name} {size(value)}" for name, value in parts.items() if value)
        free = f"{size(self.available)} free beside the graph"
        return f"memory on {self.device}, about: {listed}; {free}"

    def check(self, run: Run) -> None:
        """Refuse a run that cannot fit even if the estimate is too high; say what to reduce."""
        self.check_graph(run.dataset)
        if self.needed <= MARGIN * self.available:
            return
        raise TooLarge(
            f"{run.method} on {run.backbone} would take about {size(self.needed)} beside the "
            f"graph, and {size(self.available)} are free; {self.advice(run)}"
        )

    def check_graph(self, dataset: str) -> None:
        """Refuse a graph that does not fit into memory by itself."""
        if self.still_to_come > self.free:
            smaller = "a smaller scale" if dataset.startswith("synthetic") else "a smaller graph"
            raise TooLarge(
                f"the graph {dataset} alone takes {size(self.graph)}, and {size(self.free)} are "
                f"free on {self.device}; use {smaller}, or a machine with more memory"
            )

    def advice(self, run: Run) -> str:
        """Advice on what to reduce, according to what takes most."""
        others = max(self.histories, self.step, self.evaluation)
        if run.training.node_features == LEARNED and self.features + self.weights > others:
            return "lower node_width, or set node_features to random"
        if self.features > others and "exact_first_hop" in run.method_settings:
            return "set features to fp16, turn off exact_first_hop, or use a smaller graph"
        if self.histories > max(self.step, self.evaluation):
            return "set history to fp16, lower hidden, or use a method without histories"
        if self.evaluation > self.step:
            whole = any(getattr(run.training, name) for name in WHOLE_GRAPH)
            off = "turn off refresh_histories and staleness_every, or " if whole else ""
            return f"{off}lower hidden"
        if run.method == "full":
            return "use a method that samples, such as graphfm-ib, or lower hidden"
        for name in ("batch_size", "parts_per_batch", "budget"):
            if name in run.method_settings:
                return f"lower {name} or hidden"
        return "lower hidden"


def by_need(plan: MemoryPlan) -> int:
    """The key to sort plans by: the memory needed."""
    return plan.needed


def memory_plan(run: Run, graph: Graph) -> MemoryPlan:
    """Estimate the memory of `run` on `graph`, on the graph's device."""
    return plan_for(run, GraphSize.of(graph), graph.device)


def foresee(run: Run, device: torch.device) -> MemoryPlan | None:
    """The plan of a run before its graph is loaded; None if its name does not tell its size."""
    if run.named_backbone.is_model:  # it is examined with the graph's own kind of edges
        return None
    known = known_size(run.dataset, device, run.training.feature_type)
    return None if known is None else plan_for(run, known, device)


def plan_for(run: Run, graph: GraphSize, device: torch.device) -> MemoryPlan:
    """Estimate the memory of `run` on a graph of that size."""
    with torch.device("meta"):
        sizes = graph.num_features, graph.num_classes, graph.num_nodes
        backbone = run.new_backbone(*sizes, graph.edges, planned=True)
    method = run.new_method()
    step = plan_step(graph, device, backbone, method, run.training)
    blocks = method.sampler.footprint(graph, backbone.num_blocks)
    layers = [blocks[depth] for depth in backbone.depths]
    number = sum(p.numel() for p in backbone.parameters())
    # The moments of learned rows, and the rows of the best epoch; the rows are in the features.
    learned = sum(table.num_bytes for table in step.learned.values())
    return MemoryPlan(
        device=device.type,
        graph=graph.num_bytes,
        indices=_index_bytes(method, graph),
        features=_feature_bytes(backbone, step, graph),
        histories=_history_bytes(step, graph),
        weights=4 * 4 * number + learned,
        step=_step_bytes(backbone, layers, graph.num_features),
        evaluation=_evaluation_bytes(run, step, backbone, method, graph),
        free=_free(device),
        still_to_come=graph.still_to_come,
    )


def _index_bytes(method: Method, graph: GraphSize) -> int:
    seeds = graph.num_train if method.sampler.starts_at_training_nodes else 0
    return PER_NODE * graph.num_nodes + PER_SEED * seeds


def _feature_bytes(backbone: Backbone, step: StepPlan, graph: GraphSize) -> int:
    width = backbone.hop_width + (0 if backbone.node_rows is None else backbone.node_rows.width)
    rows = 4 * graph.num_nodes * width
    return rows if step.first_hop is None else rows + step.first_hop.num_bytes


def _history_bytes(step: StepPlan, size: GraphSize) -> int:
    tables = step.tables.values()
    seeds_only = any(table.spec.seeds_only for table in tables)
    places = 4 * (size.num_nodes + 1) if seeds_only else 0  # the row of each node
    return sum(table.num_bytes for table in tables) + places


def _step_bytes(backbone: Backbone, layers: list[LayerFootprint], num_features: int) -> int:
    """The rows of each layer with their gradients, and the edges."""
    numbers = 0.0
    for layer, part in zip(backbone.layers, layers, strict=True):
        numbers += part.sources * (layer.in_width + 2 * layer.message_width)
        numbers += part.targets * (2 * layer.agg_width + 3 * layer.out_width)
    rows = layers[0].sources if layers else 0.0
    if backbone.node_rows is not None:  # learned rows have gradients too
        num_features = backbone.node_rows.width * (1 if backbone.learned_rows is None else 2)
    distinct = {id(part): part for part in layers}  # layers that share a block share its edges
    edges = sum(part.edges for part in distinct.values())
    return int(4 * (numbers + rows * num_features) + PER_EDGE * edges)


def _evaluation_bytes(
    run: Run, step: StepPlan, backbone: Backbone, method: Method, graph: GraphSize
) -> int:
    """The kept rows, and one layer of one chunk or of the whole graph."""
    n, edges = graph.num_nodes, min(graph.num_edges, CHUNK_EDGES)
    targets, sources = min(n, CHUNK_NODES), min(n, CHUNK_NODES + CHUNK_EDGES)
    whole = any(getattr(run.training, name) for name in WHOLE_GRAPH)
    if whole or method.sampler.wants_gradients:
        targets, sources, edges = n, n, graph.num_edges
    chunk = max(
        (
            sources * (layer.in_width + 2 * layer.message_width)
            + targets * (layer.agg_width + layer.out_width)
            for layer in backbone.layers
        ),
        default=0,
    )
    rows = _kept_rows(backbone, graph, known=step.exact_first_hop)
    if (n <= CHUNK_NODES and graph.num_edges <= CHUNK_EDGES) or targets == n:
        rows = n * _widest_pair(backbone, graph.num_classes)
    return 4 * (rows + chunk) + PER_EDGE_ONE_WAY * edges


def _kept_rows(backbone: Backbone, graph: GraphSize, *, known: bool) -> int:
    """The most numbers that two layers hold at a time in inference by chunks."""
    n, reach = graph.num_nodes, 1 + graph.mean_degree
    layers = backbone.layers[1:] if known else backbone.layers
    width = backbone.layers[0].out_width if known else 0  # raw features are not copied
    below = most = n * width if 4 * n * width <= KEPT_BYTES else 0
    for above, layer in zip(reversed(range(len(layers))), layers, strict=True):
        rows = int(min(n, graph.num_scored * reach**above)) * layer.out_width
        most = max(most, below + rows)
        below = below + rows if backbone.joins_layers else rows
    return most


def _widest_pair(backbone: Backbone, num_classes: int) -> int:
    """The largest width of a layer's input and output rows together, in inference."""
    pairs = [layer.in_width + layer.out_width for layer in backbone.layers]
    if backbone.joins_layers:
        pairs.append(sum(layer.in_width for layer in backbone.layers) + pairs[-1])
    return max([*pairs, num_classes])


def _free(device: torch.device) -> int:
    if device.type != "cuda":
        return available_memory()
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + cached
