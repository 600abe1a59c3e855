"""What the histories of neighbour methods take in, what they pass on, and what beta does."""

import pytest
import torch

from graphfm import InputError
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

LINEAR = ["gcn", "gcnii", "sage"]  # whose aggregate is a weighted sum


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


@pytest.mark.parametrize("as_published", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.25, 0.6])
def test_the_gradient_of_momentum_is_that_of_the_fresh_part(make_graph, beta, as_published):
    """One GCN layer: of GraphSAGE's gradient a share of beta, or all, whatever histories hold."""
    graph, grads = make_graph(), []
    backbone = network(graph, "gcn", layers=1)
    momentum = {"beta": (beta,), "start": "zero", "as_published": as_published}
    plain = {"as_published": as_published}  # the same picks
    for name, options in (("graphsage", plain), ("graphfm-ib", momentum)):
        trainer, x = make_trainer(graph, backbone, name, fanout=(2,), **options), graph.x.clone()
        if name == "graphfm-ib":
            fill(trainer, 0, torch.randn(60, graph.num_features))
        forward(trainer, torch.arange(60), x=x.requires_grad_()).sum().backward()
        grads.append(x.grad)
    share = beta if as_published else 1.0
    torch.testing.assert_close(grads[1], share * grads[0], **CLOSE)


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


# Momentum


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
