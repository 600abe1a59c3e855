"""Rows that are trained with the network: the same as an embedding in plain torch."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from graphfm import train
from graphfm.estimators.exact import Exact
from graphfm.runs.run import Run, build

OPTIONS = {
    "node_features": "learned", "node_width": 5, "hidden": 6, "dropout": 0.0, "lr": 0.05,
    "schedule": "constant", "device": "cpu",
}  # fmt: skip
KINDS = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def make_trainer(graph, **options):
    return build(Run.make(dataset="in-memory", **OPTIONS, **options), graph)


def embedding_of(trainer, **options):
    """A copy of the learned rows."""
    return nn.Embedding.from_pretrained(trainer.rows.rows.clone(), freeze=False, **options)


def stepped(loss, optimizers):
    """Take one step of every optimizer."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()


@pytest.mark.parametrize("optimizer", KINDS)
@pytest.mark.parametrize("num_features", [0, 7])
def test_full_batch_is_an_embedding_in_plain_torch(make_graph, num_features, optimizer):
    """SAGE with dense matrices and torch's own optimizers, for 12 steps. No code of ours."""
    graph = make_graph(num_features=num_features)
    trainer = make_trainer(graph, method="full", optimizer=optimizer)
    rows, kind = embedding_of(trainer, sparse=True), getattr(torch.optim, KINDS[optimizer])
    weights = [p.detach().clone().requires_grad_() for p in trainer.backbone.parameters()]
    of_rows = torch.optim.SGD if optimizer == "sgd" else torch.optim.SparseAdam
    optimizers = [of_rows(rows.parameters(), lr=0.05), kind(weights, lr=0.05, weight_decay=0.0)]
    source, target = graph.edge_index
    mean = torch.zeros(graph.num_nodes, graph.num_nodes)
    mean.index_put_((target, source), torch.ones(graph.num_edges), accumulate=True)
    mean /= mean.sum(dim=1, keepdim=True).clamp(min=1)
    for _ in range(12):
        h = torch.cat([graph.x, rows(graph.ids)], dim=1)
        for depth in range(2):
            h = linear(torch.cat([mean @ h, h], dim=1), weights[2 * depth], weights[2 * depth + 1])
            h = h.relu() if depth == 0 else h
        loss = cross_entropy(h[graph.train_mask], graph.y[graph.train_mask])
        stepped(loss, optimizers)
        assert trainer.epoch() == pytest.approx(float(loss.detach()), rel=1e-4)
    torch.testing.assert_close(trainer.rows.rows, rows.weight.detach(), **CLOSE)
    torch.testing.assert_close(trainer.x[:, :num_features], graph.x)  # features are not learned


SAMPLED = {
    "graphsage": {"fanout": (2,), "batch_size": 8},
    "shadow": {"fanout": (2,), "batch_size": 8},  # the same node in several subgraphs
    "fastgcn": {"nodes_per_layer": (15,), "batch_size": 8},
    "ladies": {"nodes_per_layer": (15,), "batch_size": 8},
    "graphsaint": {"budget": 10, "coverage": 5},
    "cluster-gcn": {"parts": 6, "parts_per_batch": 2, "partition": "random"},
}


@pytest.mark.parametrize("method", SAMPLED)
def test_a_sampled_step_is_a_sparse_embedding_of_torch(make_graph, method):
    """The same batches, `nn.Embedding(sparse=True)` and `SparseAdam`, for two epochs."""
    graph = make_graph(undirected=True)
    trainer = make_trainer(graph, method=method, **SAMPLED[method])
    network, rows = copy.deepcopy(trainer.backbone), embedding_of(trainer, sparse=True)
    optimizers = [
        torch.optim.SparseAdam(rows.parameters(), lr=0.05),
        torch.optim.Adam(network.parameters(), lr=0.05),
    ]
    sampler = trainer.method.sampler
    for _ in range(2):
        for seeds in sampler.epoch(trainer.rng):
            batch = sampler.sample(seeds, trainer.rng)
            given = trainer.inputs(batch)
            if not batch.trains:
                continue
            x = torch.cat([graph.x[batch.input_ids], rows(batch.input_ids)], dim=1)
            loss = given.objective(network(x, batch, Exact()), torch.zeros(2))
            stepped(loss, optimizers)
            torch.testing.assert_close(trainer.learn(given), loss.detach(), **CLOSE)
    torch.testing.assert_close(trainer.rows.rows, rows.weight.detach(), **CLOSE)
    assert not torch.equal(trainer.rows.rows, embedding_of(make_trainer(graph)).weight)


def weights_after(graph, method, **options):
    common = {**OPTIONS, "epochs": 4, "layers": 3, "batch_norm": True, **options}
    return train(graph, method=method, **common).model.backbone.state_dict()


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii", "pna"])
def test_momentum_of_beta_one_is_graphsage_bit_for_bit(make_graph, backbone):
    options = {"backbone": backbone, "fanout": (2,), "batch_size": 8}
    graph, rate = make_graph(), {"dropout": 0.5}
    one = weights_after(graph, "graphsage", **options, **rate)
    other = weights_after(graph, "graphfm-ib", beta=(1.0,), **options, **rate)
    torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("method", ["gas", "graphfm-ob", "graphfm-delta", "cluster-gcn"])
@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii"])
def test_one_part_is_full_batch(make_graph, method, backbone):
    graph, part = make_graph(undirected=True), {"parts": 1, "parts_per_batch": 1}
    one = weights_after(graph, method, backbone=backbone, **part)
    other = weights_after(graph, "full", backbone=backbone)
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_a_gradient_reaches_the_halo_in_the_first_layer_and_no_further(make_graph):
    """Of gas: rows of a batch and of its halo move; all other rows stay as they were."""
    graph = make_graph(num_nodes=200, num_edges=300, undirected=True)
    how = {"parts": 20, "parts_per_batch": 1, "partition": "random"}
    trainer = make_trainer(graph, method="gas", layers=3, **how)
    before = trainer.rows.rows.clone()
    batch = trainer.method.sampler.sample(torch.tensor([3]), trainer.rng)
    trainer.learn(trainer.inputs(batch))
    moved = (trainer.rows.rows != before).any(dim=1).nonzero().squeeze(1)
    halo = set(batch.blocks[0].halo_ids.tolist())
    assert halo & set(moved.tolist())
    assert set(moved.tolist()) <= set(batch.input_ids.tolist())
    assert len(batch.input_ids) < 100
