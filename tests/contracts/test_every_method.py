"""What a method promises of its batches: exact at full budget, unbiased if its paper says so."""

import pytest
import torch

from graphfm import Graph, train
from graphfm.backbones import BACKBONES
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum
from graphfm.methods import METHODS
from graphfm.runs.run import Run, backbone_of, build
from graphfm.step_plan import StepPlan

MARGIN = 5.0  # standard errors an average may be off; seeded, so it is met always or never
ALL = 10_000  # more than any of these graphs has of anything

# Settings with which a method sees the whole graph, whatever else it does.
WHOLE = [
    ("full", {}),
    ("graphsage", {"fanout": (24,), "batch_size": ALL}),
    ("graphfm-ib", {"fanout": (24,), "batch_size": ALL}),
    ("vr-gcn", {"fanout": (24,), "batch_size": ALL}),
    ("fastgcn", {"nodes_per_layer": (ALL,), "batch_size": ALL}),
    ("ladies", {"nodes_per_layer": (ALL,), "batch_size": ALL}),
    ("mvs-gcn", {"nodes_per_layer": (ALL,), "batch_size": ALL}),
    ("graphsaint", {"subgraph": "node", "budget": ALL}),
    ("graphsaint", {"subgraph": "edge", "budget": ALL}),
    ("graphsaint", {"subgraph": "walk", "budget": ALL}),
    ("shadow", {"subgraph": "khop", "depth": 3, "fanout": (ALL,), "batch_size": ALL}),
    ("shadow", {"subgraph": "pagerank", "budget": ALL, "batch_size": ALL}),
    ("cluster-gcn", {"parts": 3, "parts_per_batch": 3}),
    ("gas", {"parts": 3, "parts_per_batch": 3}),
    ("graphfm-ob", {"parts": 3, "parts_per_batch": 3}),
    ("graphfm-delta", {"parts": 3, "parts_per_batch": 3}),
    ("sign", {"batch_size": ALL}),
    ("sgc", {"batch_size": ALL}),
]
NETWORKS = {
    "sage": {},
    "gcn": {"diagonal": 0.5},
    "gcnii": {"layers": 2},
    "pna": {"aggregators": ("mean", "max", "std")},
    "sign": {},
    "sgc": {},
}


def networks(method, several):
    """Those of several networks that a method is for, or the one it brings along."""
    own = backbone_of(method)
    return several if own is None else [own]


def taken(backbone, **options):
    known = BACKBONES[backbone].Settings.__dataclass_fields__
    return {name: value for name, value in options.items() if name in known}


def margin_of(method):
    """GraphSAINT's factors are counted on 5 times as many subgraphs, which adds to the error."""
    return MARGIN * (1.2 if method == "graphsaint" else 1.0)


def gradients(trainer, batch):
    trainer.optimizer.zero_grad()
    loss = trainer.batch_loss(batch)
    loss.backward()
    return loss.detach(), [p.grad.clone() for p in trainer.backbone.parameters()]


def first_batch(trainer):
    sampler = trainer.method.sampler
    return sampler.sample(next(iter(sampler.epoch(trainer.rng))), trainer.rng)


def test_every_method_is_listed():
    assert {name for name, _ in WHOLE} == set(METHODS)


@pytest.mark.parametrize(
    ("method", "settings", "backbone"),
    [
        (method, settings, backbone)
        for method, settings in WHOLE
        for backbone in networks(method, ["sage", "gcn", "gcnii", "pna"])
    ],
)
def test_with_the_whole_graph_it_is_full_batch(make_graph, method, settings, backbone):
    """Loss and gradients, on a directed graph with weights, loops, duplicates and lone nodes."""
    graph = make_graph(weighted=True)
    network = {"backbone": backbone, **taken(backbone, dropout=0.0), **NETWORKS[backbone]}
    if (method, backbone) == ("graphfm-delta", "pna"):
        network["aggregators"] = ("mean",)
    assert_full_batch(graph, method, settings, network)


@pytest.mark.parametrize(("method", "settings"), [of for of in WHOLE if not backbone_of(of[0])])
def test_so_it_is_where_the_decoder_reads_all_layers(make_graph, method, settings):
    network = {"backbone": "pna", "layers": 3, "jump": True, "aggregators": ("mean",)}
    assert_full_batch(make_graph(weighted=True), method, settings, {**network, "dropout": 0.0})


def assert_full_batch(graph, method, settings, network):
    """Loss and gradients of the method's batch are those of full batch."""
    one, other = (
        build(Run.make(method=name, **how, **network), graph)
        for name, how in ((method, settings), ("full", {}))
    )
    want_loss, want = gradients(other, first_batch(other))
    loss, found = gradients(one, first_batch(one))
    torch.testing.assert_close(loss, want_loss, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found, want, rtol=1e-3, atol=1e-5)


# ---- unbiased


UNBIASED = [
    ("graphsage", {"fanout": (2,)}),
    ("vr-gcn", {"fanout": (2,)}),
    ("fastgcn", {"nodes_per_layer": (20,)}),
    ("ladies", {"nodes_per_layer": (20,), "normalize_rows": False}),
    ("mvs-gcn", {"nodes_per_layer": (20,)}),
    ("graphsaint", {"subgraph": "node", "budget": 25, "coverage": 2000}),
    ("graphsaint", {"subgraph": "edge", "budget": 25, "coverage": 2000}),
    ("graphsaint", {"subgraph": "walk", "budget": 12, "coverage": 2000}),
]


@pytest.mark.parametrize("kind", ["mean", "symmetric"])
@pytest.mark.parametrize(("method", "settings"), UNBIASED)
def test_the_estimate_of_a_linear_aggregate_is_unbiased(make_graph, method, settings, kind):
    """Given that a node is among the targets."""
    graph = make_graph(weighted=True)
    adjacency = getattr(Adjacency, kind)(graph)
    sampler, rng = METHODS[method](**settings).sampler, torch.Generator().manual_seed(0)
    sampler.prepare(adjacency, StepPlan(num_layers=1))
    exact = weighted_sum(graph.x, adjacency.full_block()).double()
    total, squares = torch.zeros_like(exact), torch.zeros_like(exact)
    count = torch.zeros(graph.num_nodes, 1)
    for _ in range(600):
        seeds = next(iter(sampler.epoch(rng)))
        (block,) = sampler.sample(seeds, rng).blocks
        found = weighted_sum(graph.x[block.src_ids], block).double()
        total[block.dst_ids] += found
        squares[block.dst_ids] += found.square()
        count[block.dst_ids] += 1
    often = count.squeeze(1) >= 100
    assert int(often.sum()) >= 15
    mean, count = total[often] / count[often], count[often]
    error = ((squares[often] / count - mean.square()).clamp(min=0) / count).sqrt()
    assert bool((error > 0).any())  # something is sampled
    off = (mean - exact[often]).abs()
    assert bool((off <= margin_of(method) * error + 1e-5).all()), float((off / error).max())


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("mvs-gcn", {"batch_size": 8}),
        ("graphsaint", {"subgraph": "node", "budget": 25, "coverage": 2000}),
        ("graphsaint", {"subgraph": "walk", "budget": 12, "coverage": 2000}),
    ],
)
def test_a_batch_that_weighs_its_losses_is_an_unbiased_mean(make_graph, method, settings):
    graph = make_graph()
    sampler, rng = METHODS[method](**settings).sampler, torch.Generator().manual_seed(0)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
    ids = graph.train_mask.nonzero().flatten()
    if method == "mvs-gcn":
        sampler.snapshot(torch.rand(ids.numel(), generator=rng))
    value = torch.randn(graph.num_nodes, generator=rng)
    found = []
    for _ in range(600):
        batch = sampler.sample(next(iter(sampler.epoch(rng))), rng)
        trains = graph.train_mask[batch.target_ids].float()
        found.append((value[batch.target_ids] * batch.loss_weight * trains).sum())
    found = torch.stack(found).double()
    error = found.std() / len(found) ** 0.5
    assert error > 0
    assert abs(found.mean() - value[ids].double().mean()) < margin_of(method) * error


# ---- odd graphs


def tiny(num_nodes, edges, y, **options):
    ids = torch.arange(num_nodes)
    edges = torch.tensor(edges).view(-1, 2).T
    return Graph.from_edges(
        edges, torch.randn(num_nodes, 3), torch.tensor(y),
        train_mask=ids % 2 == 0, val_mask=ids % 2 == 1, **options,
    )  # fmt: skip


ODD = {
    "two nodes": lambda: tiny(2, [[0, 1]], [0, 1]),
    "two nodes apart": lambda: tiny(2, [], [0, 1]),
    "a lone node": lambda: tiny(5, [[0, 1], [1, 2], [2, 0], [0, 3]], [0, 1, 0, 1, 0]),
    "one way": lambda: tiny(6, [[u, v] for u in range(6) for v in range(u)], [0, 1] * 3),
    "a class nobody learns": lambda: tiny(6, [[0, 1], [2, 3], [4, 5]], [0, 2, 1, 2, 0, 1]),
    "loops and duplicates": lambda: tiny(4, [[0, 0], [0, 1], [0, 1], [1, 0], [2, 2]], [0, 1, 0, 1]),
    "many labels": lambda: tiny(4, [[0, 1], [1, 2], [2, 3]], [[0, 1], [1, 1], [1, 0], [0, 0]]),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    ("method", "backbone"),
    [(method, backbone) for method in METHODS for backbone in networks(method, ["sage", "gcn"])],
)
def test_odd_graphs_train(method, odd, backbone):
    options = {"parts": 2, "parts_per_batch": 1}
    takes = Run.make(method=method).method_settings
    options = {name: value for name, value in options.items() if name in takes}
    options |= {"backbone": backbone, **taken(backbone, hidden=4)}
    result = train(ODD[odd](), method=method, epochs=2, **options)
    assert 0 <= result.score.val <= 1
    assert all(p.isfinite().all() for p in result.model.backbone.parameters())
