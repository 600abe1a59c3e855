"""What the neighbour methods are when their settings leave nothing to chance or to the past."""

import copy

import pytest
import torch

from graphfm.backbones import BACKBONES
from graphfm.estimators.aggregate_momentum import STARTS
from graphfm.training.inference import LayerwiseInference
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer
from tests.identities.neighbor_training import (
    CLOSE,
    GRAPH_BACKBONES,
    HISTORY,
    fill,
    forward,
    history,
    make_method,
    make_trainer,
    network,
)


def test_only_nodes_that_train_need_a_last_history(make_graph):
    """Of the last layer the others are never read: the same training, with a smaller table."""
    graph = make_graph(num_nodes=200, num_edges=900)
    found = []
    for everyone in (False, True):
        method = make_method("graphfm-ib", batch_size=8, fanout=(2,))
        if everyone:
            method.sampler.starts_at_training_nodes = False
        torch.manual_seed(1)
        trainer = Trainer(graph, network(graph, "sage"), method, Training(lr=0.02, seed=4))
        losses = [trainer.epoch() for _ in range(3)]
        first, last = method.estimator.histories.values()
        found.append((losses, first.rows, last.pull(graph.train_mask.nonzero().squeeze(1))))
        trained = int(graph.train_mask.sum())
        assert last.rows.size(0) == (graph.num_nodes if everyone else trained) + 1
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


def layer_inputs(backbone, graph):
    """What each layer reads of all nodes, exactly."""
    inputs = []
    hooks = [
        layer.dropout.register_forward_hook(lambda module, args, out: inputs.append(out))
        for layer in backbone.layers
    ]
    LayerwiseInference(backbone.adjacency(graph))(backbone)
    for hook in hooks:
        hook.remove()
    return inputs


def trained(graph, backbone, name, epochs=3, **options):
    trainer = make_trainer(graph, backbone, name, **options)
    torch.manual_seed(9)  # dropout
    losses = [trainer.epoch() for _ in range(epochs)]
    return trainer.backbone.state_dict(), losses


VARIANTS = {
    "plain": {},
    "noisy": {"dropout": 0.5, "dropout_input": True, "batch_norm": True, "residual": True},
    "deep": {"layers": 3, "dropout": 0.3},
}


@pytest.mark.parametrize(
    ("variant", "options"),
    [("plain", {"start": "zero"}), ("plain", {}), ("noisy", {}), ("noisy", {"start": "zero"}),
     ("noisy", {"correct_lag": False}), ("noisy", {"as_published": True}), ("deep", {})],
)  # fmt: skip
@pytest.mark.parametrize("name", BACKBONES)
def test_momentum_of_beta_one_is_graphsage_bit_for_bit(make_graph, name, variant, options):
    """With dropout too: a history that has no share draws no random number."""
    graph = make_graph(weighted=True)
    backbone = network(graph, name, **VARIANTS[variant])
    published = {"as_published": options.get("as_published", False)}  # the same picks
    plain, plain_losses = trained(graph, backbone, "graphsage", fanout=(2,), **published)
    ours, losses = trained(graph, backbone, "graphfm-ib", fanout=(2,), beta=(1.0,), **options)
    assert losses == plain_losses
    assert plain.keys() == ours.keys()
    for key in plain:
        assert torch.equal(plain[key], ours[key]), key
    weights = [key for key, _ in backbone.named_parameters()]
    assert any(not torch.equal(plain[key], backbone.state_dict()[key]) for key in weights)


@pytest.mark.parametrize("start", ["fresh", "zero"])
@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_momentum_of_a_smaller_beta_is_not(make_graph, name, start):
    graph = make_graph()
    backbone = network(graph, name)
    _, plain = trained(graph, backbone, "graphsage", fanout=(2,))
    _, ours = trained(graph, backbone, "graphfm-ib", fanout=(2,), beta=(0.5,), start=start)
    assert plain != ours


@pytest.mark.parametrize("visits", [1, 3])
@pytest.mark.parametrize(
    ("method", "options"),
    [("graphsage", {}), ("graphfm-ib", {"beta": (1.0,)}), ("vr-gcn", {})],
    ids=["graphsage", "graphfm-ib", "vr-gcn"],
)
@pytest.mark.parametrize("name", BACKBONES)
def test_full_fanout_is_full_batch(make_graph, name, method, options, visits):
    """Whatever the histories hold: they are written in each visit, and by other weights."""
    graph = make_graph(num_nodes=30, num_edges=100, weighted=True)
    trainer = make_trainer(
        graph, network(graph, name), method, fanout=(int(graph.degree.max()),), **options
    )
    seeds = torch.tensor([29, 3, 11, 0])
    for number in range(visits):
        if number > 0:
            trainer.step(graph.train_mask.nonzero().squeeze(1))
        want = LayerwiseInference(trainer.backbone.adjacency(graph))(trainer.backbone)[seeds]
        got = forward(trainer, seeds, seed=number)
        torch.testing.assert_close(got.detach(), want, **CLOSE)


@pytest.mark.parametrize("method", ["graphsage", *HISTORY])
@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_a_smaller_fanout_is_not(make_graph, name, method):
    graph = make_graph(num_nodes=30, num_edges=100)
    trainer = make_trainer(graph, network(graph, name), method, fanout=(1,))
    want = LayerwiseInference(trainer.backbone.adjacency(graph))(trainer.backbone)
    got = forward(trainer, torch.arange(30))
    assert float((got.detach() - want).abs().max()) > 1e-2


@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_vr_gcn_with_fresh_histories_makes_no_error(make_graph, name):
    """One neighbour of many, and yet every output is exact."""
    graph = make_graph(weighted=True)
    trainer = make_trainer(graph, network(graph, name, layers=3), "vr-gcn", fanout=(1,))
    for depth, rows in enumerate(layer_inputs(trainer.backbone, graph)):
        fill(trainer, depth, rows)
    want = LayerwiseInference(trainer.backbone.adjacency(graph))(trainer.backbone)
    torch.testing.assert_close(forward(trainer, torch.arange(60)).detach(), want, **CLOSE)


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_vr_gcn_is_unbiased_whatever_the_histories_hold(make_graph, name):
    """One layer without an activation; within 5 standard errors of 400 draws."""
    graph, draws = make_graph(), 400
    trainer = make_trainer(graph, network(graph, name, layers=1), "vr-gcn", fanout=(1,))
    fill(trainer, 0, torch.randn(60, graph.num_features))
    with torch.no_grad():
        sample = torch.stack([forward(trainer, torch.arange(60), seed) for seed in range(draws)])
    want = LayerwiseInference(trainer.backbone.adjacency(graph))(trainer.backbone)
    standard = sample.double().std(0) / draws**0.5
    assert bool(((sample.double().mean(0) - want).abs() <= 5 * standard + 1e-5).all())
    assert float(standard.max()) > 1e-3


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", BACKBONES)
def test_building_a_trainer_changes_nothing(make_graph, name, start):
    """No statistics move, no random number is drawn, and what histories start from is clean."""
    graph = make_graph()
    options = {"layers": 3, "dropout": 0.5, "dropout_input": True, "batch_norm": True}
    backbone = network(graph, name, **options)
    before = copy.deepcopy(backbone.state_dict())
    state = torch.random.get_rng_state()
    trainer = make_trainer(graph, backbone, "graphfm-ib", fanout=(2,), start=start)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert trainer.backbone.training
    torch.testing.assert_close(trainer.backbone.state_dict(), before, rtol=0, atol=0)
    for depth, layer in enumerate(backbone.layers):
        want = torch.zeros(60, layer.agg_width)
        if start == "features" and depth == 0:
            rows = backbone.eval().encode(graph.x).detach()
            want = rows.repeat(1, layer.agg_width // rows.size(1))  # for each aggregator of PNA
        assert torch.equal(history(trainer, depth), want)
