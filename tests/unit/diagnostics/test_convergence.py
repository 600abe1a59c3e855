"""Traces of the exact gradient, slopes, and the couplings of Theorem 1."""

import pytest
import torch

from graphfm.diagnostics.convergence import (
    Coupling,
    fit_slope,
    printed_coupling,
    repaired_coupling,
    trace_gradient,
)
from graphfm.diagnostics.gradient import exact_gradient
from graphfm.diagnostics.smooth_problem import SmoothProblem
from graphfm.errors import InputError
from graphfm.runs.run import Run, build


def full_batch(graph, **options):
    run = Run.make(method="full", backbone="gcn", hidden=6, dropout=0.5, **options)
    return build(run, graph)


def test_the_exact_gradient_is_that_of_a_full_batch_step(make_graph):
    run = Run.make(method="full", backbone="gcn", hidden=6, dropout=0.0, lr=1e-12)
    trainer = build(run, make_graph())
    want = exact_gradient(trainer)
    trainer.step(next(iter(trainer.method.sampler.epoch(trainer.rng))))
    got = torch.cat([p.grad.flatten() for p in trainer.backbone.parameters()]).double()
    torch.testing.assert_close(want, got, rtol=1e-4, atol=1e-7)


def test_a_trace_trains_as_an_epoch_does(make_graph):
    graph = make_graph()
    traced, plain = (full_batch(graph, schedule="constant") for _ in range(2))
    for trainer in (traced, plain):
        torch.manual_seed(3)
        if trainer is plain:
            for _ in range(6):
                trainer.epoch()
        else:
            trace = trace_gradient(trainer, 6, points=3)
    want, got = plain.backbone.state_dict(), traced.backbone.state_dict()
    torch.testing.assert_close(got, want, rtol=0, atol=0)
    assert trace.steps == (0, 2, 4)
    assert trace.mean == pytest.approx(sum(trace.squared_norms) / 3)


def test_the_rest_is_the_norm_of_the_mean_gradient(make_graph):
    trainer = full_batch(make_graph(), lr=1e-12)
    trace = trace_gradient(trainer, 4)
    assert trace.rest == pytest.approx(trace.mean, rel=1e-4)  # weights stand still


def test_a_power_is_found_for_every_seed():
    slope = fit_slope([1, 10, 100], [[3 * x**p for x in (1, 10, 100)] for p in (-0.5, -0.4, -0.2)])
    assert (slope.low, slope.value, slope.high) == pytest.approx((-0.5, -0.4, -0.2))
    assert slope.confidence == 0.75
    assert str(slope) == "-0.400 (75 % interval -0.500 to -0.200)"


@pytest.mark.parametrize(
    ("x", "runs"), [([1], [[1]]), ([1, 2], []), ([1, 2], [[1, 2], [1]]), ([1, 2], [[1, 0]])]
)
def test_slopes_need_two_positive_points(x, runs):
    with pytest.raises(InputError, match="expected two or more|positive"):
        fit_slope(x, runs)


def test_couplings_follow_their_powers_of_e():
    e = 0.5
    printed = printed_coupling(3, e**-5, lr=0.2, steps=10, beta=0.8)
    assert printed == Coupling(beta=(0.2, 0.4, 0.8), lr=0.025, beta_1=0.125, steps=320)
    repaired = repaired_coupling(3, e**-6, lr=0.2, steps=10)
    assert repaired.beta == pytest.approx((e**4, e**3, e**2))
    assert (repaired.lr, repaired.beta_1) == pytest.approx((0.2 * e**4, e**2))
    assert repaired.steps == 640


def test_the_problem_is_as_the_paper_assumes():
    problem = SmoothProblem.make(2)
    trainer = problem.trainer(Coupling(beta=(0.3,), lr=0.1, beta_1=0.25, steps=1), seed=0)
    assert trainer.optimizer.param_groups[0]["betas"] == (0.75, 0.9)
    trained = [name for name, p in trainer.backbone.named_parameters() if p.requires_grad]
    assert trained == ["encode.weight"]
    weight = trainer.backbone.encode.weight
    for _ in range(40):  # gradient descent reaches a minimum
        gradient = exact_gradient(trainer).float().view_as(weight)
        with torch.no_grad():
            weight -= 0.5 * gradient
    assert float(exact_gradient(trainer).square().sum()) < 1e-3


def test_what_a_trace_cannot_do(make_graph):
    trainer = full_batch(make_graph())
    with pytest.raises(InputError, match="steps is 0 and points 60; expected 1 or more"):
        trace_gradient(trainer, 0)
    minimal = build(Run.make(method="mvs-gcn", backbone="gcn", hidden=4), make_graph())
    with pytest.raises(InputError, match="use another method"):
        trace_gradient(minimal, 1)
