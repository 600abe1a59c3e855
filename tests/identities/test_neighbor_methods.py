"""What the neighbour methods are when their settings leave nothing to chance or to the past."""

import copy
import inspect

import pytest
import torch

from graphfm import InputError, methods
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.estimators.aggregate_momentum import STARTS
from graphfm.training.inference import LayerwiseInference
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
GRAPH_BACKBONES = sorted(set(BACKBONES) - {"mlp", "sign", "sgc"})
LINEAR = ["gcn", "gcnii", "sage"]  # whose aggregate is a weighted sum
HISTORY = ["graphfm-ib", "vr-gcn"]


def make_method(name, **options):
    """The method without the exact first hop: every layer is sampled, every layer has a past."""
    function = methods.METHODS[name]
    if "exact_first_hop" in inspect.signature(function).parameters:
        options["exact_first_hop"] = False
    return function(**options)


def network(graph, name, **options):
    torch.manual_seed(1)
    settings = {"hidden": 8, "layers": 2, "dropout": 0.0} | options
    known = BACKBONES[name].Settings.__dataclass_fields__
    settings = {key: value for key, value in settings.items() if key in known}
    backbone = make_backbone(name, graph.num_features, graph.num_classes, **settings)
    backbone.calibrate(graph)
    return backbone


def make_trainer(graph, backbone, name, **options):
    options = {"batch_size": 8} | options
    training, method = Training(lr=0.02, seed=4), make_method(name, **options)
    method.sampler.starts_at_training_nodes = False  # these steps begin anywhere
    return Trainer(graph, copy.deepcopy(backbone), method, training)


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


def history(trainer, depth):
    """Every node's row of one layer's history."""
    return trainer.method.estimator.histories[depth].pull(torch.arange(trainer.graph.num_nodes))


def fill(trainer, depth, values):
    ids = torch.arange(trainer.graph.num_nodes)
    trainer.method.estimator.histories[depth].push(ids, values)


def forward(trainer, seeds, seed=0, x=None):
    x = trainer.x if x is None else x
    batch = trainer.method.sampler.sample(seeds, torch.Generator().manual_seed(seed))
    return trainer.backbone(x[batch.input_ids], batch, trainer.method.estimator)


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
    ("variant", "start"), [("plain", "zero"), ("noisy", "fresh"), ("deep", "fresh")]
)
@pytest.mark.parametrize("name", BACKBONES)
def test_momentum_of_beta_one_is_graphsage_bit_for_bit(make_graph, name, variant, start):
    graph = make_graph(weighted=True)
    backbone = network(graph, name, **VARIANTS[variant])
    plain, plain_losses = trained(graph, backbone, "graphsage", fanout=(2,))
    ours, losses = trained(graph, backbone, "graphfm-ib", fanout=(2,), beta=(1.0,), start=start)
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


@pytest.mark.parametrize("method", HISTORY)
@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_histories_take_no_dropout(make_graph, name, method):
    """The first step leaves the same rows behind with dropout as without, to the last bit."""
    graph, rows = make_graph(), []
    for dropout in (0.0, 0.5):
        options = {"dropout": dropout, "dropout_input": True, "batch_norm": True}
        trainer = make_trainer(graph, network(graph, name, **options), method, fanout=(2,))
        torch.manual_seed(3)
        trainer.step(torch.tensor([0, 3, 6, 9, 12]))
        rows.append([history(trainer, depth) for depth in range(2)])
    for clean, noisy in zip(*rows, strict=True):
        assert torch.equal(clean, noisy)
        assert bool((clean != 0).any())


@pytest.mark.parametrize("method", HISTORY)
@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_a_second_pass_for_the_histories_leaves_batch_norm_alone(make_graph, name, method):
    """With dropout a step passes the batch twice; the running statistics move once."""
    graph = make_graph()
    options = {"layers": 3, "dropout": 0.5, "batch_norm": True}
    with_history = make_trainer(graph, network(graph, name, **options), method, fanout=(2,))
    ours = with_history.backbone.layers[0].norm
    before, passes = ours.running_mean.clone(), []
    ours.register_forward_hook(
        lambda module, args, out: passes.append((module.momentum, args[0].mean(0).detach()))
    )
    with_history.step(torch.tensor([0, 3, 6, 9, 12]))
    assert len(passes) == 2
    moved = [(momentum, mean) for momentum, mean in passes if momentum > 0]
    ((momentum, mean),) = moved
    torch.testing.assert_close(ours.running_mean, before + momentum * (mean - before), **CLOSE)


@pytest.mark.parametrize("method", HISTORY)
@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_no_gradient_reaches_the_past(make_graph, name, method):
    graph = make_graph()
    trainer = make_trainer(graph, network(graph, name), method, fanout=(2,))
    past, present = (graph.x.clone().requires_grad_() for _ in range(2))
    forward(trainer, torch.arange(60), seed=0, x=past)
    assert all(bool((history(trainer, depth) != 0).any()) for depth in range(2))
    forward(trainer, torch.arange(60), seed=1, x=present).square().sum().backward()
    assert past.grad is None
    assert bool((present.grad != 0).any())
    assert not any(history(trainer, depth).requires_grad for depth in range(2))


@pytest.mark.parametrize("beta", [0.0, 0.25, 0.6])
def test_the_gradient_of_momentum_is_that_of_the_fresh_part(make_graph, beta):
    """One GCN layer: beta times the gradient of GraphSAGE, whatever the histories hold."""
    graph, grads = make_graph(), []
    backbone = network(graph, "gcn", layers=1)
    for name, options in (("graphsage", {}), ("graphfm-ib", {"beta": (beta,), "start": "zero"})):
        trainer, x = make_trainer(graph, backbone, name, fanout=(2,), **options), graph.x.clone()
        if name == "graphfm-ib":
            fill(trainer, 0, torch.randn(60, graph.num_features))
        forward(trainer, torch.arange(60), x=x.requires_grad_()).sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(grads[1], beta * grads[0], **CLOSE)


@pytest.mark.parametrize("name", LINEAR)
def test_the_gradient_of_vr_gcn_is_that_of_the_sample(make_graph, name):
    """One layer: the two terms of the past move the output, not its gradient."""
    graph, grads, outs = make_graph(), [], []
    backbone = network(graph, name, layers=1)
    if name == "gcnii":  # its last activation hides or shows the gradient
        backbone.layers[0].activation = False
    for method in ("graphsage", "vr-gcn"):
        trainer, x = make_trainer(graph, backbone, method, fanout=(2,)), graph.x.clone()
        if method == "vr-gcn":
            fill(trainer, 0, torch.randn(60, trainer.backbone.layers[0].in_width))
        outs.append(forward(trainer, torch.arange(60), x=x.requires_grad_()))
        outs[-1].sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(grads[1], grads[0], **CLOSE)
    assert not torch.allclose(*outs, atol=1e-2)


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


@pytest.mark.parametrize("start", ["fresh", "zero"])
def test_only_visited_rows_are_written(make_graph, start):
    graph = make_graph()
    trainer = make_trainer(
        graph, network(graph, "sage"), "graphfm-ib", fanout=(2,), beta=(0.3,), start=start
    )
    marks = [torch.randn(60, trainer.backbone.layers[depth].agg_width) for depth in range(2)]
    for depth, rows in enumerate(marks):
        fill(trainer, depth, rows)
    seeds = torch.tensor([0, 3, 6])
    batch = trainer.method.sampler.sample(seeds, torch.Generator().manual_seed(8))
    trainer.backbone(graph.x[batch.input_ids], batch, trainer.method.estimator)
    for depth, block in enumerate(batch.blocks):
        visited = torch.zeros(60, dtype=torch.bool).index_fill(0, block.dst_ids, True)
        changed = (history(trainer, depth) != marks[depth]).any(dim=1)
        assert 0 < int(visited.sum()) < 60
        assert torch.equal(changed, visited)


@pytest.mark.parametrize("beta", [0.9, 0.3, 0.01, 1e-3, 1e-5, 1e-9])
def test_a_first_visit_takes_the_fresh_value_whole(make_graph, beta):
    graph, rows = make_graph(), []
    backbone = network(graph, "sage")
    for value in (beta, 1.0):
        trainer = make_trainer(graph, backbone, "graphfm-ib", fanout=(2,), beta=(value,))
        forward(trainer, torch.arange(60))
        rows.append([history(trainer, depth) for depth in range(2)])
    torch.testing.assert_close(*rows, **CLOSE)


def test_beta_zero_learns_from_the_nodes_own_rows_alone(make_graph):
    """Nothing fresh gets in: the aggregate stays at its start, and stays a number."""
    graph = make_graph()
    for start in ("fresh", "zero"):
        trainer = make_trainer(
            graph, network(graph, "sage"), "graphfm-ib", fanout=(2,), beta=(0.0,), start=start
        )
        for number in range(3):
            out = forward(trainer, torch.arange(60), seed=number)
            assert bool(torch.isfinite(out).all())
            assert not bool(history(trainer, 0).any())


def test_a_beta_for_each_layer(make_graph):
    """Layer 1 forgets at once, layer 2 blends: each as if the other had the same beta."""
    graph = make_graph()
    backbone = network(graph, "sage")

    def rows(*beta):
        trainer = make_trainer(graph, backbone, "graphfm-ib", fanout=(2,), beta=beta, start="zero")
        fill(trainer, 0, torch.ones(60, 7))
        fill(trainer, 1, torch.ones(60, 8))
        forward(trainer, torch.arange(60))
        return history(trainer, 0), history(trainer, 1)

    (one_first, one_second), (half_first, _) = rows(1.0), rows(0.5)
    first, second = rows(1.0, 0.5)
    assert torch.equal(first, one_first)
    torch.testing.assert_close(second, (1 + one_second) / 2, **CLOSE)
    first, second = rows(0.5, 1.0)
    assert torch.equal(first, half_first)
    assert not torch.allclose(second, one_second, atol=1e-3)  # it read other rows
    for same, listed in zip(rows(0.5), rows(0.5, 0.5), strict=True):
        assert torch.equal(same, listed)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_wrong_number_of_betas_is_refused(make_graph, layers):
    graph = make_graph()
    backbone = network(graph, "sage", layers=layers)
    with pytest.raises(InputError, match=rf"beta has 2 numbers; expected .* or {layers}:"):
        make_trainer(graph, backbone, "graphfm-ib", beta=(0.3, 0.5))


@pytest.mark.parametrize("beta", [(), (-0.1,), (1.1,), (0.5, float("nan"))])
def test_a_bad_beta_is_refused(beta):
    with pytest.raises(InputError, match=r"beta is .*; expected numbers from 0 to 1"):
        make_method("graphfm-ib", beta=beta)


def test_a_bad_start_is_refused():
    with pytest.raises(InputError, match="start is warm; expected one of fresh"):
        make_method("graphfm-ib", start="warm")
