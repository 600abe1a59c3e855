"""A network of PyG on small graphs where our batches must be exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphfm.batch import Batch, Block
from graphfm.data.graph import Graph
from graphfm.estimators.base import Estimator
from graphfm.estimators.exact import Exact
from graphfm.estimators.halo_history import HaloHistory
from graphfm.estimators.layer_step import ForwardPass, LayerStep, Setup
from graphfm.pyg.guards import in_mode
from graphfm.pyg.whole_graph import EDGE_DATA
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import StepPlan
from graphfm.tables.base import TablePlan
from graphfm.tables.device import allocate

if TYPE_CHECKING:  # which asks whether `rows_follow`
    from graphfm.pyg.model import OwnModel

NODES, DEGREE, TOLERANCE = 120, 4, 1e-4


@torch.no_grad()
def trials(model: OwnModel, width: int, data: Mapping[str, Tensor]) -> dict[str, float]:
    """Largest errors where nothing is left out, or nothing that matters.

    They are of inference in chunks, of nodes in another order, of all neighbours sampled, of exact
    histories, and of some neighbours where each is as good as all of them.
    """
    graph, rows = _small_graph(width, data), torch.arange(0, NODES, 3)
    exact = _exact(model, graph)
    errors = {
        "chunks": _distance(_exact(model, graph, 50), exact),
        "order": _in_another_order(model, graph, exact),
    }
    if model.findings.apart:
        return errors
    return errors | {
        "sampled": _distance(_with_all_neighbors(model, graph, rows[:3]), exact[rows[:3]]),
        "halo": _distance(_with_histories(model, graph, rows), exact[rows]),
        "alike": _with_alike_neighbors(model, width, data),
    }


@torch.no_grad()
def rows_follow(model: OwnModel, width: int, data: Mapping[str, Tensor]) -> bool:
    """Whether the rows of a halo follow from exact aggregates, though some of its edges are unseen.

    They do not if the network itself counts edges, say.
    """
    if model.findings.apart or model.findings.problems:
        return False
    graph, rows = _small_graph(width, data), torch.arange(0, NODES, 3)
    try:
        exact, estimator = _exact(model, graph), KnownAggregates()
        with in_mode(model.net, False):
            model.whole_pass(graph.x, model.adjacency(graph), estimator.record)
        return _distance(_in_a_part(model, graph, rows, estimator), exact[rows]) <= TOLERANCE
    except Exception:  # the certificate says what is wrong
        return False


class KnownAggregates(Estimator):
    """Takes the halo's aggregates from a pass over the whole graph."""

    computes_halo = True

    def __init__(self) -> None:
        self.known = dict[int, Tensor]()

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        self.known[step.depth] = agg

    def halo_aggregate(self, step: LayerStep) -> Tensor:
        return self.known[step.depth][step.block.halo_ids]


def _exact(model: OwnModel, graph: Graph, chunk_edges: int = 1 << 40) -> Tensor:
    model.calibrate(graph)
    with in_mode(model.net, False):
        return model.infer(model.adjacency(graph), graph.x, len(model.layers), chunk_edges)


def _in_another_order(model: OwnModel, graph: Graph, exact: Tensor) -> float:
    """The error on the same graph whose nodes are numbered from the last to the first."""
    more = {name: getattr(graph, name) for name in EDGE_DATA}
    turned = Graph.from_edges(NODES - 1 - graph.edge_index, graph.x.flip(0), **more)
    error = _distance(_exact(model, turned).flip(0), exact)
    model.calibrate(graph)
    return error


def _with_all_neighbors(model: OwnModel, graph: Graph, rows: Tensor) -> Tensor:
    adjacency, blocks, ids = model.adjacency(graph), list[Block](), rows
    for _ in range(model.num_blocks):
        blocks.insert(0, adjacency.block(ids))
        ids = blocks[0].src_ids
    return _run(model, graph, Batch(ids, rows, tuple(blocks)), Exact())


def _with_alike_neighbors(model: OwnModel, width: int, data: Mapping[str, Tensor]) -> float:
    """The error of half of the neighbours on a graph whose nodes and edges are all the same."""
    rng, ids = torch.Generator().manual_seed(0), torch.arange(NODES)
    steps = torch.tensor([1, 2, 5, 11])[:DEGREE].unsqueeze(1)
    edges = torch.stack([(ids + steps) % NODES, ids.expand(DEGREE, -1)]).flatten(1)
    more = {
        name: values[:1].expand(edges.size(1), *values.shape[1:]) for name, values in data.items()
    }
    x = torch.randn(1, width, generator=rng).expand(NODES, -1).contiguous()
    graph = Graph.from_edges(edges, x, **more)  # type: ignore[arg-type]
    exact, sampler = _exact(model, graph), NeighborSampler(fanout=(DEGREE // 2,), batch_size=3)
    sampler.prepare(model.adjacency(graph), StepPlan(num_layers=model.num_blocks))
    found = _run(model, graph, sampler.sample(ids[:3], rng), Exact())
    return _distance(found, exact[:3])


def _run(model: OwnModel, graph: Graph, batch: Batch, estimator: Estimator) -> Tensor:
    with in_mode(model.net, False):
        return model.forward(graph.x[batch.input_ids], batch, estimator, ForwardPass(records=False))


def _in_a_part(model: OwnModel, graph: Graph, rows: Tensor, estimator: Estimator) -> Tensor:
    """Outputs of some nodes that are a batch, with their in-neighbours as a halo."""
    block = replace(model.adjacency(graph).block(rows), from_halo=None)
    batch = Batch(block.src_ids, rows, (block,) * model.num_blocks)
    return _run(model, graph, batch, estimator)


def _with_histories(model: OwnModel, graph: Graph, rows: Tensor) -> Tensor:
    """Outputs of some nodes whose halo has exact histories."""
    estimator = HaloHistory(exact_first_hop=False)
    specs = estimator.declare(model.layers, 0)
    plans = {
        name: TablePlan(spec=spec, num_rows=NODES, dtype=torch.float32)
        for name, spec in specs.items()
    }
    tables = allocate(plans, NODES, graph.device, None)
    estimator.prepare(Setup(layers=model.layers, tables=tables))
    with in_mode(model.net, False):
        model.whole_pass(graph.x, model.adjacency(graph), estimator.record)
    return _in_a_part(model, graph, rows, estimator)


def _distance(found: Tensor, exact: Tensor) -> float:
    """The largest difference, relative to the largest number above 1."""
    scale = exact.abs().max().clamp(min=1.0)
    return float((found - exact).abs().max() / scale) if exact.numel() else 0.0


def _small_graph(width: int, data: Mapping[str, Tensor]) -> Graph:
    """A ring with some further edges, without self-loops."""
    rng = torch.Generator().manual_seed(0)
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    some = torch.randint(NODES, (2, NODES // 2), generator=rng)
    edges = torch.unique(torch.cat([ring, some[:, some[0] != some[1]]], 1), dim=1)
    number = torch.arange(edges.size(1))
    more = {name: values[number % values.size(0)] for name, values in data.items()}
    return Graph.from_edges(edges, torch.randn(NODES, width, generator=rng), **more)  # type: ignore[arg-type]
