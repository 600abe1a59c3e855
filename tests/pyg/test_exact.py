"""Where nothing is left out or out of date, every network of the zoo is exact."""

import pytest
import torch

from graphfm.training.whole_graph import refresh_histories
from tests.pyg.harness import (
    TOLERANCE,
    batch_outputs,
    by_pyg,
    by_pyg_inside,
    distance,
    examined,
    gradient_distance,
    trainer_of,
)
from tests.pyg.zoo import ZOO

# Weights of edges that are made of attributes: only the whole graph has their sums.
UNKNOWN_WEIGHTS = {"PDNConv"}
PARTS = {"parts": 3, "exact_first_hop": False}
every = pytest.mark.parametrize("name", ZOO)
local = pytest.mark.parametrize("name", [name for name in ZOO if name not in UNKNOWN_WEIGHTS])


def test_the_zoo_is_large():
    assert len(ZOO) >= 100


@every
@pytest.mark.parametrize("method", ["gas", "graphfm-ob"])
def test_one_batch_of_all_parts_is_full_batch(name, method):
    model, graph = examined(name)
    trainer = trainer_of(model, graph, method, parts_per_batch=3, **PARTS)
    batch, out = batch_outputs(trainer, torch.arange(3))
    exact = by_pyg(model, graph, name)[batch.target_ids]
    assert batch.target_ids.sort().values.equal(torch.arange(graph.num_nodes))
    assert distance(out, exact) < TOLERANCE
    ids = batch.target_ids
    assert gradient_distance(model.net, out, exact, ids) < TOLERANCE


@local
def test_exact_histories_make_every_part_exact(name):
    model, graph = examined(name)
    trainer = trainer_of(model, graph, "gas", parts_per_batch=1, **PARTS)
    refresh_histories(trainer)
    model.eval()
    for part in range(3):
        batch, out = batch_outputs(trainer, torch.tensor([part]), records=part == 2)
        ids = batch.target_ids
        exact = by_pyg_inside(model, graph, ids, name)[ids]
        assert distance(out, exact) < TOLERANCE
        assert gradient_distance(model.net, out, exact, ids) < TOLERANCE


@local
def test_all_neighbours_sampled_make_rows_exact(name):
    model, graph = examined(name)
    trainer = trainer_of(model, graph, "graphsage", fanout=(graph.num_edges,), batch_size=5)
    seeds = torch.tensor([3, 41, 17, graph.num_nodes - 1, 60])
    batch, out = batch_outputs(trainer, seeds)
    exact = by_pyg(model, graph, name)[seeds]
    assert batch.target_ids.equal(seeds)
    assert distance(out, exact) < TOLERANCE
    assert gradient_distance(model.net, out, exact, seeds) < TOLERANCE
