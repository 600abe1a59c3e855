"""Dropout never enters a history, and batch norms learn once, from real rows only."""

import pytest
import torch
import torch_geometric.nn as pyg

from graphfm.training.settings import Training
from tests.pyg.graphs import make_graph
from tests.pyg.habits import FunctionalDropout, InputNorm
from tests.pyg.harness import trainer_of, wrapped
from tests.pyg.published import ProductsSAGE
from tests.pyg.zoo import HIDDEN, IN, OUT

STILL = Training(lr=1e-12)
PICKED = {"fanout": (2,), "batch_size": 24, "exact_first_hop": False}
PARTS = {"parts": 6, "parts_per_batch": 2, "exact_first_hop": False}
HISTORIES = {
    "graphfm-ib": PICKED, "vr-gcn": PICKED, "gas": PARTS, "graphfm-ob": PARTS,
    "graphfm-delta": PARTS,
}  # fmt: skip


def hidden_dropout(p):
    """By a function that no module shows, on the features too."""
    return FunctionalDropout(IN, HIDDEN, OUT, p=p)


def module_dropout(p):
    return pyg.GraphSAGE(IN, HIDDEN, 3, OUT, dropout=p)


def attention_dropout(p):
    return pyg.GAT(IN, HIDDEN, 3, OUT, dropout=p)


def histories(net, graph, method):
    trainer = trainer_of(wrapped(net, graph), graph, method, STILL, **HISTORIES[method])
    for _ in range(2):
        trainer.epoch()
    return trainer.method.estimator.state_dict()


PAIRS = [(make, method) for make in (hidden_dropout, module_dropout) for method in HISTORIES]
PAIRS += [(attention_dropout, method) for method in ("graphfm-ib", "gas", "graphfm-ob")]


@pytest.mark.parametrize(("make", "method"), PAIRS)
def test_histories_are_those_of_the_network_without_dropout(make, method):
    graph, noisy, still = make_graph(), make(0.6), make(0.0)
    still.load_state_dict(noisy.state_dict())
    found, expected = histories(noisy, graph, method), histories(still, graph, method)
    assert found.keys() >= expected.keys()  # rows that only dropout changes are kept as well
    for name, table in expected.items():
        assert torch.allclose(found[name], table, atol=1e-4, equal_nan=True), name


@pytest.mark.parametrize("method", ["graphsage", "graphfm-ib", "gas", "graphfm-ob"])
def test_batch_norm_learns_once_from_the_rows_of_the_batch(method):
    graph, net = make_graph(plain=True), ProductsSAGE(IN, HIDDEN, OUT)
    options = PARTS if method in ("gas", "graphfm-ob") else {"fanout": (90,), "batch_size": 3}
    options |= {"exact_first_hop": False} if method == "graphfm-ib" else {}
    trainer = trainer_of(wrapped(net, graph), graph, method, STILL, **options)
    seeds = next(iter(trainer.method.sampler.epoch(trainer.rng)))
    given = trainer.draw(seeds)
    first = given.batch.blocks[0]
    with torch.no_grad():  # every neighbour is there, so the first rows are those of the graph
        rows = net.convs[0](graph.x, graph.edge_index)[first.dst_ids]
    trainer.learn(given)
    norm = net.norms[0]
    assert int(norm.num_batches_tracked) == int(net.norms[1].num_batches_tracked) == 1
    assert torch.allclose(norm.running_mean, 0.1 * rows.mean(0), atol=1e-5)
    assert torch.allclose(norm.running_var, 0.9 + 0.1 * rows.var(0), atol=1e-5)
    assert first.num_src > first.num_dst  # there were other rows to learn from


def test_a_norm_of_features_learns_from_the_part_alone():
    graph, net = make_graph(plain=True), InputNorm(IN, HIDDEN, OUT)
    trainer = trainer_of(wrapped(net, graph), graph, "gas", STILL, **PARTS)
    seeds = next(iter(trainer.method.sampler.epoch(trainer.rng)))
    given = trainer.draw(seeds)
    trainer.learn(given)
    rows = graph.x[given.batch.target_ids]
    assert torch.allclose(net.norm.running_mean, 0.1 * rows.mean(0), atol=1e-5)


@pytest.mark.parametrize("method", ["graphsage", "gas"])
def test_a_norm_of_messages_learns_from_every_edge(method):
    graph, net = make_graph(plain=True), pyg.EdgeCNN(IN, HIDDEN, 2, OUT, norm="batch_norm")
    options = PARTS if method == "gas" else {"fanout": (90,), "batch_size": 3}
    trainer = trainer_of(wrapped(net, graph), graph, method, STILL, **options)
    given = trainer.draw(next(iter(trainer.method.sampler.epoch(trainer.rng))))
    edges, first = given.batch.blocks[0].edges, net.convs[0].nn
    source, target = (graph.x[given.batch.input_ids][end.long()] for end in (edges.col, edges.row))
    with torch.no_grad():
        rows = first.lins[0](torch.cat([target, source - target], 1))
    trainer.learn(given)
    assert torch.allclose(first.norms[0].module.running_mean, 0.1 * rows.mean(0), atol=1e-5)
