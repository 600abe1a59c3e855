"""Histories take no gradient and no dropout, and stay finite, with compensation too."""

import pytest
import torch

from graphfm import Graph, methods, train
from graphfm.backbones import make_backbone
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer
from tests.unit.estimators.history_training import (
    CASES,
    CLUSTER_CASES,
    batch_of,
    copy_state,
    rows_of,
    step,
    tables_of,
    trainer_of,
)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("case", CASES)
def test_no_history_requires_a_gradient(graph, case, dropout):
    trainer = trainer_of(graph, case, dropout=dropout)
    for _ in range(2):
        trainer.epoch()
        for table in tables_of(trainer).values():
            rows = table.pull(torch.arange(5))
            assert not table.rows.requires_grad
            assert not rows.requires_grad
            assert table.rows.grad_fn is None
            assert table.rows.grad is None


@pytest.mark.parametrize("network", [{}, {"first_hop": False, "dropout_input": True}])
@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii"])
@pytest.mark.parametrize("case", ["graphfm-ib", *CLUSTER_CASES])
def test_dropout_never_reaches_the_histories(graph, case, backbone, network):
    """Gradients aside, which are those of the loss as it was taken."""
    options = {"backbone": backbone} | network
    clean = trainer_of(graph, case, dropout=0.0, **options)
    noisy = trainer_of(graph, case, dropout=0.5, **options)
    clean.epoch()
    clean.epoch()
    copy_state(clean, noisy)
    seeds, losses = batch_of(clean), []
    for trainer in (clean, noisy):
        losses.append(step(trainer, seeds))
    assert losses[0] != losses[1]  # the dropout is there
    for name, rows in rows_of(clean).items():
        if not name.startswith("gradient."):
            assert torch.equal(rows, rows_of(noisy)[name]), name


@pytest.mark.parametrize("case", [case for case in CLUSTER_CASES if "compensated" in case])
def test_compensation_without_a_halo(graph, case):
    """All parts at once, or a part that reads nobody: there is nothing to compensate."""
    plain, compensated = case.split(",")[0], {"compensate": True}
    losses = []
    for options in ({}, compensated):
        torch.manual_seed(1)
        net = make_backbone("gcn", graph.num_features, graph.num_classes, layers=3, dropout=0.0)
        method = methods.METHODS[plain](parts=1, parts_per_batch=1, **options)
        trainer = Trainer(graph, net, method, Training())
        losses.append([trainer.epoch() for _ in range(3)])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("case", CLUSTER_CASES)
def test_a_halo_that_reads_nobody_spoils_nothing(case):
    """Node 0 is read by all and reads none: its share of nothing is not to be divided by."""
    edges = torch.tensor([[0] * 9 + list(range(1, 9)), [*range(1, 10), *range(2, 10)]])
    even = torch.arange(10) % 2 == 0
    graph = Graph.from_edges(
        edges, torch.randn(10, 3), torch.arange(10) % 3, train_mask=even, val_mask=~even
    )
    trainer = trainer_of(graph, case, backbone="sage", first_hop=False)
    for _ in range(3):
        assert torch.tensor(trainer.epoch()).isfinite()
    assert all(rows.isfinite().all() for rows in rows_of(trainer).values())


@pytest.mark.parametrize("name", ["gas", "graphfm-ob", "graphfm-delta"])
def test_compensation_survives_batches_that_teach_nothing(make_graph, name):
    graph = make_graph(undirected=True)
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
    mask[0] = True
    lonely = Graph.from_edges(
        graph.edge_index, graph.x, graph.y, train_mask=mask, val_mask=graph.val_mask,
        num_classes=graph.num_classes,
    )  # fmt: skip
    options = {"parts": 10, "parts_per_batch": 1, "layers": 3, "epochs": 3}
    result = train(lonely, method=name, compensate=True, **options)
    assert bool(torch.isfinite(result.model.predict(graph)).all())
