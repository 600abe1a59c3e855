"""A network of PyG on small graphs where our batches must be exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.graph import Graph
from graphfm.estimators.exact import Exact
from graphfm.estimators.halo_history import HaloHistory
from graphfm.estimators.layer_step import Setup
from graphfm.pyg.guards import in_mode
from graphfm.pyg.model import OwnModel
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import StepPlan
from graphfm.tables.base import TablePlan
from graphfm.tables.device import allocate

NODES, DEGREE = 120, 4


@torch.no_grad()
def trials(model: OwnModel, width: int, data: Mapping[str, Tensor]) -> dict[str, float]:
    """Largest errors: of inference in chunks, of all neighbours sampled, of exact histories.

    "alike" is the error of some neighbours where each is as good as all of them.
    """
    graph = _small_graph(width, data)
    model.calibrate(graph)
    adjacency, rows = model.adjacency(graph), torch.arange(0, NODES, 3)
    with in_mode(model.net, False):
        exact = model.infer(adjacency, graph.x, None, 1 << 40)
        chunked = model.infer(adjacency, graph.x, None, 50)
        assert exact is not None
        assert chunked is not None
        blocks, ids = list[object](), rows[:3]
        for _ in range(model.num_blocks):
            block = adjacency.block(ids)
            blocks.insert(0, block)
            ids = block.src_ids
        batch = Batch(ids, rows[:3], tuple(blocks))  # type: ignore[arg-type]
        sampled = _run(model, graph, batch) if not model.findings.changed else exact[rows[:3]]
        halo = exact[rows]
        if not model.findings.changed:
            halo = _with_histories(model, graph, rows)
    return {
        "chunks": _distance(chunked, exact),
        "sampled": _distance(sampled, exact[rows[:3]]),
        "halo": _distance(halo, exact[rows]),
        "alike": 0.0 if model.findings.changed else _with_alike_neighbors(model, width, data),
    }


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
    model.calibrate(graph)
    adjacency, sampler = (
        model.adjacency(graph),
        NeighborSampler(fanout=(DEGREE // 2,), batch_size=3),
    )
    sampler.prepare(adjacency, StepPlan(num_layers=model.num_blocks))
    with in_mode(model.net, False):
        exact = model.infer(adjacency, graph.x, ids[:3], 1 << 40)
        found = _run(model, graph, sampler.sample(ids[:3], rng))
    assert exact is not None
    return _distance(found, exact)


def _run(
    model: OwnModel, graph: Graph, batch: Batch, estimator: HaloHistory | None = None
) -> Tensor:
    return model.forward(graph.x[batch.input_ids], batch, estimator or Exact())


def _with_histories(model: OwnModel, graph: Graph, rows: Tensor) -> Tensor:
    """Outputs of some nodes whose halo has exact histories."""
    estimator, adjacency = HaloHistory(exact_first_hop=False), model.adjacency(graph)
    specs = estimator.declare(model.layers, 0)
    plans = {
        name: TablePlan(spec=spec, num_rows=NODES, dtype=torch.float32)
        for name, spec in specs.items()
    }
    tables = allocate(plans, NODES, graph.device, None)
    estimator.prepare(Setup(layers=model.layers, tables=tables))
    model.whole_pass(graph.x, adjacency, estimator.record)
    block = adjacency.block(rows)
    halo = replace(block, from_halo=None)
    return _run(model, graph, Batch(block.src_ids, rows, (halo,) * model.num_blocks), estimator)


def _distance(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).abs().max()) if exact.numel() else 0.0


def _small_graph(width: int, data: Mapping[str, Tensor]) -> Graph:
    """A ring with some further edges, without self-loops."""
    rng = torch.Generator().manual_seed(0)
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    some = torch.randint(NODES, (2, NODES // 2), generator=rng)
    edges = torch.unique(torch.cat([ring, some[:, some[0] != some[1]]], 1), dim=1)
    number = torch.arange(edges.size(1))
    more = {name: values[number % values.size(0)] for name, values in data.items()}
    return Graph.from_edges(edges, torch.randn(NODES, width, generator=rng), **more)  # type: ignore[arg-type]
