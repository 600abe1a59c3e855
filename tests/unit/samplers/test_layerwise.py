import dataclasses

import pytest
import torch

from graphfm import InputError, train
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.methods import METHODS
from graphfm.runs.run import Run, build
from graphfm.samplers.layerwise import LayerSampler
from graphfm.step_plan import StepPlan
from graphfm.training.losses import gradient_norms, node_losses


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def prepared(adjacency, *numbers, batch_size=6, num_layers=None, **options):
    sampler = LayerSampler(nodes_per_layer=numbers, batch_size=batch_size, **options)
    sampler.prepare(
        adjacency, StepPlan(num_layers=len(numbers) if num_layers is None else num_layers)
    )
    return sampler


@pytest.mark.parametrize("dependent", [False, True])
def test_a_layer_reads_its_targets_and_few_others(make_graph, dependent):
    graph = make_graph(num_nodes=200, num_edges=3000)
    sampler = prepared(Adjacency.mean(graph), 8, 5, dependent=dependent)
    batch = sampler.sample(torch.arange(0, 18, 3), generator())
    lower, upper = batch.blocks
    assert upper.num_src <= upper.num_dst + 8
    assert lower.num_src <= lower.num_dst + 5
    assert torch.equal(lower.dst_ids, upper.src_ids)
    assert torch.equal(upper.dst_ids, batch.target_ids)


def test_ladies_draws_only_neighbours_of_the_targets(make_graph):
    graph = make_graph(num_nodes=200, num_edges=1000)
    adjacency = Adjacency.mean(graph)
    seeds = torch.arange(0, 12, 3)
    near = set(adjacency.block(seeds).src_ids.tolist())
    for seed in range(20):
        (block,) = prepared(adjacency, 6, dependent=True).sample(seeds, generator(seed)).blocks
        assert set(block.src_ids.tolist()) <= near


def test_ladies_draws_by_the_columns_of_its_targets(make_graph):
    """The count of each draw is near its expectation, draws * ||A[targets, u]||^2 / total."""
    graph = make_graph(num_nodes=40, num_edges=300)
    adjacency, seeds, draws = Adjacency.mean(graph), torch.arange(0, 12, 3), 5
    full = adjacency.block(seeds)
    chance = torch.zeros(40, dtype=torch.float64)
    ids = full.src_ids[full.edges.col.long()]
    chance.index_add_(0, ids, full.edges.weight.double().square())
    chance /= chance.sum()
    sampler, rng, rounds = prepared(adjacency, draws, dependent=True), generator(), 3000
    seen = torch.zeros(40, dtype=torch.float64)
    for _ in range(rounds):
        (block,) = sampler.sample(seeds, rng).blocks
        seen[torch.unique(block.src_ids[block.edges.col.long()])] += 1
    want = 1 - (1 - chance) ** draws  # drawn at least once
    error = (want * (1 - want) / rounds).sqrt()
    assert bool(((seen / rounds - want).abs() <= 5 * error + 1e-9).all())


@pytest.mark.parametrize("kind", ["mean", "symmetric"])
def test_normalised_rows_have_their_true_total(make_graph, kind):
    graph = make_graph(num_nodes=60, num_edges=600, weighted=True)
    adjacency = getattr(Adjacency, kind)(graph)
    sampler = prepared(adjacency, 10, dependent=True, normalize_rows=True)
    (block,) = sampler.sample(torch.arange(12), generator()).blocks
    want = adjacency.block(torch.arange(12)).edges
    total, found = torch.zeros(12), torch.zeros(12)
    total.index_add_(0, want.row.long(), want.weight)
    found.index_add_(0, block.edges.row.long(), block.edges.weight)
    drawn = block.edges.indptr.diff() > 0
    assert int(drawn.sum()) > 0
    torch.testing.assert_close(found[drawn], total[drawn])


@pytest.mark.parametrize("method", ["ladies", "mvs-gcn", "fastgcn"])
def test_edges_of_next_to_no_weight_can_be_drawn(make_graph, method):
    """Their squares are below what float32 can hold."""
    graph = make_graph(weighted=True)
    faint = dataclasses.replace(graph, edge_weight=graph.edge_weight * 1e-24)
    result = train(faint, method=method, backbone="gcn", nodes_per_layer=(5,), epochs=1)
    assert all(p.isfinite().all() for p in result.model.backbone.parameters())


def test_mvs_draws_layers_as_ladies_does(make_graph):
    graph = make_graph(num_nodes=200, num_edges=1000)
    adjacency = Adjacency.mean(graph)
    method = METHODS["mvs-gcn"](nodes_per_layer=(6,), batch_size=4)
    method.sampler.prepare(adjacency, StepPlan(num_layers=1))
    seeds = torch.arange(0, 12, 3)
    near = set(adjacency.block(seeds).src_ids.tolist())
    for seed in range(20):
        (block,) = method.sampler.sample(seeds, generator(seed)).blocks
        assert set(block.src_ids.tolist()) <= near


@pytest.mark.parametrize("numbers", [(), (0,), (3, -1)])
def test_a_bad_number_is_refused(numbers):
    with pytest.raises(InputError, match=r"nodes_per_layer is .*; expected numbers of 1 or more"):
        LayerSampler(nodes_per_layer=numbers, batch_size=4)


def test_a_wrong_number_of_numbers_is_refused(make_graph):
    with pytest.raises(InputError, match="has 2 numbers, but the network has 3 layers"):
        prepared(Adjacency.mean(make_graph()), 4, 4, num_layers=3)


# ---- MVS-GCN


@pytest.mark.parametrize("multi_label", [False, True])
def test_gradient_norms_are_those_of_autograd(multi_label):
    logits = torch.randn(5, 3, requires_grad=True)
    y = torch.tensor([0, 2, 1, -1, 0])
    if multi_label:
        y = torch.tensor([[0, 1, 1], [1, 0, 0], [0, 0, 0], [-1, -1, -1], [1, 1, 1]])
    (want,) = torch.autograd.grad(node_losses(logits, y).sum(), logits)
    torch.testing.assert_close(gradient_norms(logits.detach(), y), want.norm(dim=1))


def test_nodes_of_large_gradients_come_more_often(make_graph):
    graph = make_graph()
    method = METHODS["mvs-gcn"](batch_size=5)
    method.sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
    ids, rng = graph.train_mask.nonzero().flatten(), generator()
    norms = torch.linspace(0.0, 2.0, ids.numel())
    method.sampler.snapshot(norms)
    probability = method.sampler.probability[ids]
    assert float(probability.sum()) == pytest.approx(5, rel=1e-5)
    least = probability[norms > 0.5].min()  # a node without gradient can still be drawn
    torch.testing.assert_close(probability[0], least, rtol=0.15, atol=0)
    rising = norms > 0.5 * norms.mean()
    torch.testing.assert_close(
        probability[rising] / norms[rising], (probability / norms)[-1].expand(int(rising.sum()))
    )
    batch = method.sampler.sample(next(iter(method.sampler.epoch(rng))), rng)
    want = 1 / (method.sampler.probability[batch.target_ids] * ids.numel())
    torch.testing.assert_close(batch.loss_weight, want)


def test_each_epoch_begins_with_a_snapshot(make_graph, monkeypatch):
    trainer = build(
        Run.make(method="mvs-gcn", batch_size=5, exact_first_hop=False, dropout=0.0), make_graph()
    )
    sampler, graph = trainer.method.sampler, trainer.graph
    even = sampler.probability[sampler.train_ids].clone()
    assert even.unique().numel() == 1
    told, fresh = [], []

    def snapshot(norms, tell=sampler.snapshot):
        told.append(norms)
        tell(norms)

    def step(seeds, take=trainer.step):
        if not fresh:  # before the first step histories are those of the whole graph
            h = trainer.method.estimator.histories[1].pull(torch.arange(graph.num_nodes))
            block = trainer.infer.adjacency.full_block()
            layer = trainer.backbone.layers[0]
            want = layer.update(layer.aggregate(graph.x, block), block.targets(graph.x, graph.x))
            torch.testing.assert_close(h, want.detach())
            fresh.append(True)
        return take(seeds)

    monkeypatch.setattr(sampler, "snapshot", snapshot)
    monkeypatch.setattr(trainer, "step", step)
    logits = trainer.infer(trainer.backbone)[graph.train_mask]
    trainer.epoch()
    torch.testing.assert_close(told[0], gradient_norms(logits, graph.y[graph.train_mask]))
    trainer.epoch()
    assert len(told) == 2
    assert sampler.probability[sampler.train_ids].unique().numel() > 1
