"""What a step does with learned rows, and what is planned for them."""

import pytest
import torch

from graphfm import InputError
from graphfm.runs.explain import explain
from graphfm.runs.memory_plan import memory_plan
from graphfm.runs.run import Run, build


def run_of(method="graphsage", **options):
    return Run.make(
        dataset="in-memory", method=method, device="cpu", hidden=4, node_features="learned",
        **options,
    )  # fmt: skip


def test_rows_that_a_step_has_not_read_stay_with_their_moments(make_graph):
    trainer = build(run_of(batch_size=4, fanout=(1,)), make_graph())
    tables = [trainer.rows.rows, *(table.rows for table in trainer.rows.moments.values())]
    for seeds in trainer.method.sampler.epoch(trainer.rng):
        given, before = trainer.draw(seeds), [rows.clone() for rows in tables]
        trainer.learn(given)
        read = torch.zeros(61, dtype=torch.bool)
        read[given.batch.input_ids] = True
        for rows, past in zip(tables, before, strict=True):
            moved = (rows != past).any(dim=1)
            assert bool(moved.any())
            assert not bool((moved & ~read[: rows.size(0)]).any())


def test_the_learning_rate_is_that_of_the_schedule(make_graph):
    """With sgd a row moves by its gradient times the rate of the epoch."""
    trainer = build(run_of("full", optimizer="sgd", lr=0.5, epochs=4, warmup=2), make_graph())
    for rate in (0.5 * trainer.training.factor(epoch) for epoch in range(2)):
        before = trainer.rows.rows.clone()
        given = trainer.draw(next(iter(trainer.method.sampler.epoch(trainer.rng))))
        trainer.learn(given)
        moved, expected = before - trainer.rows.rows, rate * given.x.grad[:, 7:]
        torch.testing.assert_close(moved, expected, rtol=1e-3, atol=1e-6)
        trainer.schedule.step()


@pytest.mark.parametrize(
    "method", ["graphfm-ib", "vr-gcn", "mvs-gcn", "gas", "graphfm-ob", "graphfm-delta"]
)
def test_the_plan_knows_that_the_input_changes(make_graph, method):
    trainer = build(run_of(method), make_graph())
    plan = trainer.plan
    assert plan.first_hop is None  # it would be out of date after a step
    assert not plan.first_layer_ahead
    lines = "\n".join(explain(run_of(method), make_graph()))
    assert "input of the network: 7 features, 64 learned\n" in lines
    assert "first hop: aggregated in every step\n" in lines
    assert "learned rows: [60 x 64] float32 on the device; a step moves" in lines
    assert "by lazy Adam\n" in lines


def test_a_history_corrects_for_rows_that_moved(make_graph):
    """graphfm-ib keeps the last input of its first layer, as of any other."""
    tables = build(run_of("graphfm-ib"), make_graph()).method.estimator.tables
    assert "inputs.0" in tables
    plain = Run.make(dataset="in-memory", method="graphfm-ib", device="cpu", exact_first_hop=False)
    assert "inputs.0" not in build(plain, make_graph()).method.estimator.tables


def test_the_memory_plan_counts_rows_and_moments(make_graph):
    graph, row = make_graph(), 4 * 100
    plain = Run.make(dataset="in-memory", device="cpu", hidden=4)
    without = memory_plan(plain, graph)
    adam = memory_plan(run_of("full", node_width=100), graph)
    sgd = memory_plan(run_of("full", node_width=100, optimizer="sgd"), graph)
    assert adam.weights - sgd.weights == 2 * 61 * row  # the moments
    assert sgd.weights - without.weights > 60 * row  # the rows of the best epoch
    assert adam.features - without.features == 60 * (row + 4 * 7)  # the rows that steps read
    large = run_of("shadow", node_width=10_000, batch_size=1)
    assert "node_width" in memory_plan(large, graph).advice(large)


@pytest.mark.parametrize(("options", "message"), [
    ({"node_features": "lerned"}, "node_features is lerned; expected none, degree"),
    ({"node_features": "random", "node_width": 0}, "node_width is 0; expected a whole number"),
    ({"node_features": "degree", "node_width": 8}, "node_width belongs to .* random and learned"),
    ({"node_width": 8}, "node_features is none; leave node_width out"),
])  # fmt: skip
def test_other_settings_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Run.make(**options)


@pytest.mark.parametrize(("options", "message"), [
    ({}, r"no features; give it x, or set node_features \(--node-features\) to degree, random"),
    ({"standardize": True}, "no features; give it x"),
    ({"standardize": True, "node_features": "degree"}, "no features to standardise; leave out"),
])  # fmt: skip
def test_a_graph_without_features_says_what_to_set(make_graph, options, message):
    run = Run.make(dataset="in-memory", device="cpu", **options)
    with pytest.raises(InputError, match=message):
        build(run, make_graph(num_features=0))
