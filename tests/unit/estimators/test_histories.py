"""Every history is named, written and read, and with the weights it is all there is."""

import pytest
import torch

from graphfm import methods, train
from graphfm.backbones import make_backbone
from graphfm.tables.base import NodeTable
from graphfm.training.settings import NUMBER_TYPES, Training
from graphfm.training.trainer import Trainer
from tests.unit.estimators.history_training import (
    CASES,
    batch_of,
    copy_state,
    rows_of,
    step,
    tables_of,
    trainer_of,
)

NAMES = {  # of a network of three layers, whose first aggregate is known
    "graphfm-ib": {f"{name}.{d}" for name in ("aggregate", "visits", "inputs") for d in (1, 2)},
    "vr-gcn": {"input.1", "input.2"},
    "gas": {"output.0", "output.1"},
    "graphfm-ob": {"output.0", "output.1", "written.0", "written.1"},
    "graphfm-delta": {"known.1", "aggregate.1"},
}


def owned_tables(value):
    """Every table that can be reached from an object of ours."""
    if isinstance(value, NodeTable):
        return [value]
    if isinstance(value, dict):
        return [table for item in value.values() for table in owned_tables(item)]
    if isinstance(value, list | tuple):
        return [table for item in value for table in owned_tables(item)]
    if type(value).__module__.startswith("graphfm.estimators"):
        return owned_tables(vars(value))
    return []


@pytest.mark.parametrize("first_hop", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_history_has_a_name(graph, case, first_hop):
    trainer = trainer_of(graph, case, first_hop=first_hop)
    estimator, named = trainer.method.estimator, tables_of(trainer)
    assert len({id(table) for table in named.values()}) == len(named)
    owned = {id(table) for table in owned_tables(estimator)}
    assert (estimator.first_hop is not None) == first_hop
    passing = {id(table) for table in getattr(estimator, "current", {}).values()}  # of a step
    assert owned - {id(estimator.first_hop)} - passing == {id(table) for table in named.values()}
    if first_hop:
        names = set(NAMES[case.split(",")[0]])
        if "compensated" in case:
            names |= {"gradient.1", "gradient.2"}
            if "delta" in case:  # then the halo's last sums are read too
                names |= {"known.2", "aggregate.2"}
        assert named.keys() == names


@pytest.mark.parametrize("case", CASES)
def test_every_history_is_written(graph, case):
    trainer = trainer_of(graph, case, first_hop=False)
    trainer.epoch()
    for name, rows in rows_of(trainer).items():
        assert rows.any(), name
        assert rows.isfinite().all(), name


@pytest.mark.parametrize("network", [{}, {"dropout": 0.5, "batch_norm": True}], ids=["", "noisy"])
@pytest.mark.parametrize("backbone", ["gcn", "gcnii"])
@pytest.mark.parametrize("first_hop", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_weights_and_histories_determine_the_next_step(graph, case, first_hop, backbone, network):
    options = {"first_hop": first_hop, "backbone": backbone, **network}
    first = trainer_of(graph, case, **options)
    other = trainer_of(graph, case, seed=2, **options)  # it has a past of its own
    for trainer in (first, other):
        trainer.epoch()
        trainer.epoch()
    copy_state(first, other)
    seeds, before = batch_of(first), rows_of(first)
    assert torch.equal(step(first, seeds), step(other, seeds))
    after = rows_of(first)
    torch.testing.assert_close(after, rows_of(other), rtol=0, atol=0)
    assert any(not torch.equal(before[name], after[name]) for name in after)
    for ours, theirs in zip(
        first.backbone.parameters(), other.backbone.parameters(), strict=True
    ):  # Adam's own past makes the weights differ, the gradients not
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=0)


@pytest.mark.parametrize("case", CASES)
def test_histories_matter(graph, case):
    """Else the test above would pass for tables that nobody reads."""
    first, other = (trainer_of(graph, case, first_hop=False) for _ in range(2))
    first.epoch()
    copy_state(first, other)
    for table in tables_of(other).values():
        table.rows.zero_()
    seeds = batch_of(first)
    assert not torch.equal(step(first, seeds), step(other, seeds))


@pytest.mark.parametrize("kind", ["aggregate", "visits", "inputs"])
def test_every_table_of_graphfm_ib_matters(graph, kind):
    """Rows, counts, and what was last seen: each alone changes what a step computes."""
    first, other = (trainer_of(graph, "graphfm-ib", first_hop=True) for _ in range(2))
    for _ in range(3):
        first.epoch()
    copy_state(first, other)
    for name, table in tables_of(other).items():
        if name.startswith(kind):
            table.rows.fill_(other.plan.tables[name].spec.unwritten)
    seeds = batch_of(first)
    assert not torch.equal(step(first, seeds), step(other, seeds))


@pytest.mark.parametrize("history", ["bf16", "fp16"])
@pytest.mark.parametrize("case", CASES)
def test_short_histories_train_and_stay_close(graph, case, history):
    exact = trainer_of(graph, case)
    short = trainer_of(graph, case, training=Training(history=history, seed=1))
    exact.epoch()
    copy_state(exact, short)
    seeds = batch_of(exact)
    want, got = step(exact, seeds), step(short, seeds)
    torch.testing.assert_close(got, want, rtol=0.02, atol=0.02)
    for name, table in tables_of(short).items():
        counts = name.startswith(("visits", "written"))
        kind = torch.float32 if counts else NUMBER_TYPES[history]
        assert table.rows.dtype == kind
        rows, wanted = table.rows[:-1].float(), tables_of(exact)[name].rows[:-1]
        assert (rows - wanted).norm() <= 0.02 * wanted.norm(), name
    losses = [short.epoch() for _ in range(15)]
    assert losses[-1] < losses[0]
    assert all(rows.isfinite().all() for rows in rows_of(short).values())


@pytest.mark.parametrize("history", ["bf16", "fp16"])
@pytest.mark.parametrize("backbone", ["sage", "gcn"])
@pytest.mark.parametrize("fanout", [1, 2])
def test_rounding_is_no_change_to_be_corrected(graph, backbone, fanout, history):
    """Of two layers whose weights rest the second reads the same rows again and again."""
    found = []
    for correct in (True, False):
        trainer = trainer_of(
            graph, "graphfm-ib", backbone=backbone, layers=2, training=Training(history=history)
        )
        trainer.method.sampler.fanout = (fanout,)
        trainer = Trainer(graph, trainer.backbone, trainer.method, trainer.training)
        if not correct:
            trainer.method.estimator.inputs = {}
        trainer.rng.manual_seed(5)
        for _ in range(6):
            seeds = next(iter(trainer.method.sampler.epoch(trainer.rng)))
            trainer.batch_loss(trainer.method.sampler.sample(seeds, trainer.rng))
        found.append(tables_of(trainer)["aggregate.1"].rows.float())
        assert bool((trainer.method.estimator.visits[1].rows > 1).any())
    bit = torch.finfo(NUMBER_TYPES[history]).eps  # all but a few rows are the same to the last
    assert (found[0] - found[1]).norm() < 0.05 * bit * found[1].norm()


def test_visits_are_counted_in_short_histories_too(make_graph):
    """bf16 knows no number between 256 and 258."""
    graph = make_graph(12, 30)
    training = Training(history="bf16")
    trainer = trainer_of(graph, "graphfm-ib", training=training, layers=1, first_hop=False)
    seeds = trainer.method.sampler.train_ids
    for _ in range(300):
        trainer.step(seeds)
    assert trainer.method.estimator.visits[0].pull(seeds).unique().tolist() == [300.0]


def test_a_method_may_train_twice(make_graph):
    """What the first training left behind must not reach the second."""
    method = methods.gas(parts=4)
    first = Trainer(make_graph(), make_backbone("gcn", 7, 4, dropout=0.0), method)
    assert method.estimator.first_hop is not None
    first.epoch()
    second = Trainer(make_graph(num_nodes=80), make_backbone("gcnii", 7, 4), method)
    second.epoch()
    assert method.estimator.first_hop is None
    assert not second.plan.exact_first_hop


@pytest.mark.parametrize("method", ["gas", "graphfm-ob", "graphfm-delta"])
def test_histories_that_are_never_read_are_said_to_be_so(make_graph, caplog, method):
    caplog.set_level("WARNING", logger="graphfm")  # a command may have lowered it
    train(make_graph(), method=method, layers=3, parts=4, epochs=1)
    assert not caplog.text
    train(make_graph(), method=method, layers=2, parts=4, epochs=1)
    assert "reads no histories" in caplog.text
