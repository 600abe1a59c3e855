"""With dropout, GraphFM-IB's average is dropped like the rows that it stands for.

The pass for the loss reads (1 - beta) h~ noise + beta A^(h), where h~ is the history as this step
has already written it, without any dropout. A mean over d rows with dropout p has the variance of
noise of mean 1 and variance p / (1 - p) / d.
"""

import pytest
import torch

from graphfm.estimators.aggregate_momentum import AggregateMomentum
from graphfm.estimators.layer_step import LayerStep
from tests.unit.estimators.history_training import batch_of, copy_state, rows_of, step, trainer_of

BETA, ODDS = 0.1, 1.0  # p / (1 - p) for the dropout of 0.5
NOISY = {"dropout": 0.5, "backbone": "sage"}
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def made(graph, form=None, **network):
    """A trainer of graphfm-ib with some of its settings changed."""
    trainer = trainer_of(graph, "graphfm-ib", **{**NOISY, **network})
    for name, value in (form or {}).items():
        setattr(trainer.method.estimator, name, value)
    return trainer


def watched(trainer, seeds, noise=7):
    """Take a step; what each layer was given, returned and had in its history, by pass."""
    estimator, found = trainer.method.estimator, []

    def aggregate(given: LayerStep, compute=estimator.aggregate):
        past = estimator.histories[given.depth].pull(given.block.dst_ids)
        agg = compute(given)
        found.append((given, past, agg.detach()))
        return agg

    estimator.aggregate = aggregate
    step(trainer, seeds, noise)
    del estimator.aggregate
    recording = [entry for entry in found if entry[0].forward.records]
    return recording, [entry for entry in found if not entry[0].forward.records]


def noise_of(given, past, agg, beta=BETA):
    """What the history was multiplied by, and where it is large enough to tell."""
    fresh = given.layer.aggregate(given.h, given.block).detach()
    told = past.abs() > 0.05
    return torch.where(told, (agg - beta * fresh) / ((1 - beta) * past), 1.0), told


def largest(given):
    """1 + odds / degree: what a number that is kept is multiplied by."""
    return 1 + ODDS / given.block.degree.clamp(min=1).unsqueeze(1)


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii"])
def test_the_loss_reads_the_history_of_this_step_with_noise(graph, backbone):
    trainer = made(graph, backbone=backbone)
    trainer.epoch()
    recording, training = watched(trainer, batch_of(trainer))
    assert [entry[0].depth for entry in training] == [entry[0].depth for entry in recording]
    assert len(training) >= 2
    zeros = 0
    for (_, before, written), (given, past, agg) in zip(recording, training, strict=True):
        assert torch.equal(past, written)  # the recording pass came first
        assert not torch.equal(past, before)
        noise, told = noise_of(given, past, agg)
        dropped, whole = noise.abs() < 1e-3, (noise - largest(given)).abs() < 1e-3
        assert bool((dropped | whole)[told].all())
        zeros += int(dropped[told].sum())
        assert bool(whole[told].any())
    assert zeros > 0


def test_the_noise_has_mean_one_and_the_variance_of_a_mean_of_rows(graph):
    """By degree, within 5 standard errors of the numbers drawn in 100 steps."""
    trainer, found = made(graph, hidden=64), {}
    trainer.epoch()
    seeds = batch_of(trainer)
    for number in range(100):
        _, training = watched(trainer, seeds, noise=number)
        for given, past, agg in training:
            noise, told = noise_of(given, past, agg)
            for degree in given.block.degree.unique().tolist():
                rows = given.block.degree == degree
                found.setdefault(max(degree, 1.0), []).append(noise[rows][told[rows]])
    told = {degree: torch.cat(parts).double() for degree, parts in found.items()}
    assert len([degree for degree, drawn in told.items() if drawn.numel() > 2000]) > 4
    for degree, drawn in told.items():
        variance, keep = ODDS / degree, 1 / (1 + ODDS / degree)
        fourth = (1 - keep) + keep * (1 / keep - 1) ** 4  # of 0 or 1 / keep, around their mean 1
        standard = (variance / drawn.numel()) ** 0.5
        assert float(drawn.mean()) == pytest.approx(1, abs=5 * standard), degree
        standard = ((fourth - variance**2) / drawn.numel()) ** 0.5
        assert float((drawn - 1).square().mean()) == pytest.approx(variance, abs=5 * standard)


@pytest.mark.parametrize("form", [{}, {"drop_average": False}, {"correct_lag": False}])
def test_what_is_written_holds_no_dropout(graph, form):
    """The same as from a network without dropout, whichever pass comes first."""
    clean, noisy = made(graph, form, dropout=0.0), made(graph, form)
    clean.epoch()
    copy_state(clean, noisy)
    seeds = batch_of(clean)
    assert step(clean, seeds) != step(noisy, seeds)
    tables = noisy.method.estimator.histories_by_name()
    for name, table in clean.method.estimator.histories_by_name().items():
        assert torch.equal(table.rows, tables[name].rows), name


def test_without_drop_average_the_history_is_read_as_it_is(graph):
    trainer = made(graph, {"drop_average": False})
    trainer.epoch()
    _, training = watched(trainer, batch_of(trainer))
    for given, past, agg in training:
        fresh = given.layer.aggregate(given.h, given.block).detach()
        torch.testing.assert_close(agg, torch.lerp(past, fresh, BETA), **CLOSE)
        assert bool((given.h == 0).any())  # the fresh rows are dropped as ever


def test_without_the_correction_the_loss_reads_the_history_before_this_step(graph):
    """Its average is dropped too; beta is that of the visit, as the history has not moved yet."""
    trainer = made(graph, {"correct_lag": False})
    trainer.method.estimator.inputs = {}
    trainer.epoch()
    seeds = batch_of(trainer)
    visits = trainer.method.estimator.visits
    counts = {depth: table.pull(torch.arange(60)) for depth, table in visits.items()}
    recording, training = watched(trainer, seeds)
    for (_, before, _), (given, past, agg) in zip(recording, training, strict=True):
        assert torch.equal(past, before)
        count = counts[given.depth][given.block.dst_ids]
        share = BETA / (1 - (1 - BETA) ** (count + 1))
        noise, told = noise_of(given, past, agg, share)
        told &= count > 0  # a first visit takes the fresh value whole
        dropped, whole = noise.abs() < 1e-2, (noise - largest(given)).abs() < 1e-2
        assert bool((dropped | whole)[told].all())
        assert bool(dropped[told].any())


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_random_numbers_are_drawn_only_for_noise(graph, dropout):
    """Beta 1 has no past to drop, and without dropout there is no noise."""

    def state_after(form):
        trainer = made(graph, form, dropout=dropout)
        step(trainer, batch_of(trainer))
        return torch.get_rng_state()

    plain = state_after({"drop_average": False})
    assert torch.equal(state_after({}), plain) == (dropout == 0)
    assert torch.equal(state_after({"betas": (1.0,) * 3}), plain)


@pytest.mark.parametrize("network", [{}, {"residual": True}, {"batch_norm": True}], ids=str)
@pytest.mark.parametrize("backbone", ["sage", "gcn"])
def test_both_passes_share_a_first_layer_that_is_the_same(graph, backbone, network, monkeypatch):
    """It is computed once, and loss, gradients and histories are those of two computations."""
    found = []
    for shares in (True, False):
        if not shares:
            monkeypatch.setattr(AggregateMomentum, "shares_first_layer", lambda *_: False)
        trainer, calls = made(graph, backbone=backbone, **network), []
        trainer.backbone.layers[0].update = counted(trainer.backbone.layers[0].update, calls)
        trainer.epoch()
        calls.clear()
        loss = step(trainer, batch_of(trainer))
        assert len(calls) == (1 if shares and "batch_norm" not in network else 2)
        grads = [parameter.grad for parameter in trainer.backbone.parameters()]
        found.append((loss, grads, rows_of(trainer)))
    torch.testing.assert_close(*found, rtol=0, atol=0)


def counted(function, calls):
    def call(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return call


@pytest.mark.parametrize(("beta", "kept"), [((0.1,), {1, 2}), ((1.0,), set()), ((1, 1, 0.5), {2})])
def test_rows_are_kept_only_where_a_past_counts(graph, beta, kept):
    trainer = made(graph)
    estimator = trainer.method.estimator
    estimator.beta = beta
    found = estimator.declare(trainer.backbone.layers, first=1)
    assert {name for name in found if name.startswith("inputs")} == {f"inputs.{d}" for d in kept}
    estimator.correct_lag = False
    plain = estimator.declare(trainer.backbone.layers, first=1)
    assert plain.keys() == {name for name in found if not name.startswith("inputs")}
