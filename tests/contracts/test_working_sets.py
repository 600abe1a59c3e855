"""Every estimator names in advance the rows that a step reads and writes."""

import pytest
import torch

from graphfm.estimators.base import Estimator
from graphfm.methods import Method
from graphfm.runs.run import Run, build
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.tables.base import NodeTable, TableSpec
from graphfm.tables.device import allocate as in_memory

SETTINGS = {
    "graphfm-ib": [{}, {"as_published": True}, {"start": "features", "exact_first_hop": False}],
    "vr-gcn": [{}, {"split_dropout": True}, {"exact_first_hop": False}],
    "mvs-gcn": [{"nodes_per_layer": (5,)}],
    "gas": [{"parts": 6}, {"parts": 6, "compensate": True}],
    "graphfm-ob": [{"parts": 6}, {"parts": 6, "as_published": True}, {"parts": 6, "threshold": 1}],
    "graphfm-delta": [{"parts": 6}, {"parts": 6, "compensate": True}],
    "own": [{}],
}
CASES = [
    pytest.param(method, options, id=f"{method}-{number}")
    for method, several in SETTINGS.items()
    for number, options in enumerate(several)
]


class LastSources(Estimator):
    """An estimator of a user's own, which says nothing about the rows it reads."""

    keeps_history = True

    def declare(self, layers, first):
        return {f"last.{d}": TableSpec(width=layer.in_width) for d, layer in enumerate(layers)}

    def record(self, step, agg, out):
        table = self.tables[f"last.{step.depth}"]
        table.push(step.block.src_ids, table.pull(step.block.src_ids) + step.h)


def own(*, batch_size: int = 8) -> Method:
    return Method(NeighborSampler(fanout=(2,), batch_size=batch_size), LastSources())


class Asked(NodeTable):
    """A table that notes which rows it is asked for; nothing can read it in place."""

    def __init__(self, table, num_nodes):
        self.table, self.asked = table, torch.zeros(num_nodes + 1, dtype=torch.bool)
        self.rows = table.rows

    def pull(self, ids):
        self.asked[ids] = True
        return self.table.pull(ids)

    def push(self, ids, values):
        self.asked[ids] = True
        self.table.push(ids, values)


def asked_tables(plans, num_nodes, device, seed_ids=None):
    tables = in_memory(plans, num_nodes, device, seed_ids)
    return {name: Asked(table, num_nodes) for name, table in tables.items()}


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("method", "options"), CASES)
def test_a_step_asks_for_no_other_rows(make_graph, monkeypatch, method, options, dropout, directed):
    monkeypatch.setattr("graphfm.training.trainer.allocate", asked_tables)
    if "parts" not in options:
        options = {"batch_size": 8, **options}
    graph, method = make_graph(undirected=not directed), own if method == "own" else method
    run = Run.make(method=method, layers=3, hidden=8, dropout=dropout, device="cpu", **options)
    trainer = build(run, graph)
    estimator = trainer.method.estimator
    if trainer.method.sampler.wants_gradients:
        trainer.refresh_histories()
    trainer.backbone.train()
    for seeds in trainer.method.sampler.epoch(trainer.rng):
        given = trainer.draw(seeds)
        named = estimator.working_set(given.batch.blocks)
        assert named.keys() == estimator.tables.keys()
        for table in estimator.tables.values():
            table.asked[:] = False
        trainer.learn(given)
        for name, table in estimator.tables.items():
            outside = table.asked.clone()
            outside[named[name]] = False
            assert not outside.any(), name
    assert any(bool(table.asked.any()) for table in estimator.tables.values())
