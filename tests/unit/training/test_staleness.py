"""The staleness score: by hand, after a refresh, after a step."""

import pytest
import torch

from graphfm import Graph
from graphfm.estimators.halo_history import HaloHistory
from graphfm.methods import METHODS
from graphfm.training.staleness import compare, staleness
from tests.unit.training.history_methods import CLUSTER, METHODS_WITH_HISTORY, trainer_of


def state(trainer):
    tables = {
        name: table.rows.clone()
        for name, table in trainer.method.estimator.histories_by_name().items()
    }
    weights = {key: value.clone() for key, value in trainer.backbone.state_dict().items()}
    return weights, tables, trainer.rng.get_state(), torch.get_rng_state()


@pytest.mark.parametrize("first_hop", [False, True])
@pytest.mark.parametrize("backbone", ["sage", "gcnii"])
@pytest.mark.parametrize("method", METHODS_WITH_HISTORY)
def test_zero_when_fresh_and_above_once_weights_move(make_graph, method, backbone, first_hop):
    graph = make_graph(undirected=True)
    options = {"batch_norm": True, "dropout": 0.3, "exact_first_hop": first_hop}
    trainer = trainer_of(graph, method, backbone=backbone, **options)
    trainer.epoch()
    trainer.refresh_histories()
    for layer in staleness(trainer):
        assert layer.score < 1e-5, layer
        assert layer.relative < 1e-5, layer
    with torch.no_grad():
        for parameter in trainer.backbone.parameters():
            parameter.mul_(1.1)
    measured = staleness(trainer)
    last = measured[-1]  # a first layer may be known exactly
    assert last.score > 1e-3
    assert last.relative > 1e-3
    outputs = method in CLUSTER
    known = first_hop and backbone == "sage" and not outputs
    assert [layer.depth for layer in measured] == ([1, 2] if outputs else [1, 2, 3][known:])


def test_score_by_hand():
    """A path 0 - 1 - 2, the mean of neighbours, weights that double: rows are plain numbers."""
    graph = Graph.from_edges(
        [[0, 1], [1, 2]],
        torch.tensor([[1.0], [2.0], [6.0]]),
        torch.zeros(3, dtype=torch.int64),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, True, False]),
        num_classes=1,
        undirected=True,
    )
    options = {"backbone": "sage", "layers": 2, "hidden": 1, "parts": 1, "parts_per_batch": 1}
    trainer = trainer_of(graph, "gas", exact_first_hop=False, **options)
    first = trainer.backbone.layers[0]
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[2.0, 0.0]]))  # of neighbours, of the node itself
        first.bias.zero_()
    trainer.method.estimator.histories[0].rows[:3] = torch.tensor([[3.0], [7.0], [8.0]])
    # neighbours' means: 2, (1 + 6) / 2, 2; doubled: 4, 7, 4; off by 1, 0 and 4
    (layer,) = staleness(trainer)
    assert layer.depth == 1
    assert layer.score == pytest.approx(5 / 3)
    assert layer.relative == pytest.approx((17 / 81) ** 0.5)


def test_score_is_a_mean_of_distances_over_nodes():
    believed = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    exact = torch.tensor([[3.0, 4.0], [3.0, 4.0], [1.0, 0.0]])
    layer = compare(1, exact, believed)
    assert (layer.depth, layer.score) == (2, pytest.approx(2.0))
    assert layer.relative == pytest.approx((26 / 51) ** 0.5)
    nothing = torch.zeros(2, 2)
    assert compare(0, nothing, nothing).relative == 0
    assert compare(0, nothing, nothing + 1).relative == float("inf")


@pytest.mark.parametrize("method", ["full", "graphsage"])
def test_a_method_without_histories_has_no_staleness(make_graph, method):
    assert staleness(trainer_of(make_graph(), method)) == []


@pytest.mark.parametrize("method", METHODS_WITH_HISTORY)
def test_measuring_changes_nothing(make_graph, method):
    trainer = trainer_of(make_graph(undirected=True), method, batch_norm=True, dropout=0.5)
    trainer.epoch()
    trainer.backbone.layers[0].eval()  # a mode of its own
    modes, before = [m.training for m in trainer.backbone.modules()], state(trainer)
    assert staleness(trainer) == staleness(trainer)
    torch.testing.assert_close(state(trainer), before, rtol=0, atol=0)
    assert [m.training for m in trainer.backbone.modules()] == modes


def test_score_uses_evaluation_mode(make_graph):
    """Dropout and the mode of the network make no difference."""
    trainer = trainer_of(make_graph(undirected=True), "gas", batch_norm=True, dropout=0.5)
    trainer.epoch()
    training = staleness(trainer)
    trainer.backbone.eval()
    assert staleness(trainer) == training


def test_rows_that_were_never_written_count_as_they_are(make_graph):
    """Before the first step histories are zero: all of the exact rows is missing."""
    trainer = trainer_of(make_graph(), "gas", exact_first_hop=False)
    assert [layer.relative for layer in staleness(trainer)] == pytest.approx([1.0, 1.0])


def test_every_method_that_keeps_a_history_is_tested_here():
    keeping = {name for name, make in METHODS.items() if make().estimator.keeps_history}
    assert keeping == set(METHODS_WITH_HISTORY)
    assert HaloHistory().history_of == "output"
