"""The age of rows: the steps since a history was written."""

import pytest
import torch

from graphfm.tables.device import DeviceTable
from graphfm.training.loop import Loop
from graphfm.training.staleness import AgeMeter, Ages
from tests.unit.training.history_methods import METHODS_WITH_HISTORY, trainer_of


def sampled(trainer, *parts):
    return trainer.method.sampler.sample(torch.tensor(parts), trainer.rng)


def test_age_counts_steps_since_a_row_was_written(make_graph):
    trainer = trainer_of(make_graph(undirected=True), "gas", exact_first_hop=False)
    meter = AgeMeter(trainer.method.estimator, 3, 60)
    assert meter.summary(0) == Ages(0.0, 0, 1.0)
    batches = [sampled(trainer, part) for part in range(3)]
    for batch in [*batches, batches[0]]:
        meter.saw(batch)
    sizes = [batch.target_ids.numel() for batch in batches]  # of ages 0, 2 and 1
    ages = meter.summary(0)
    assert ages.mean == pytest.approx((2 * sizes[1] + sizes[2]) / sum(sizes))
    assert ages.max == 2
    assert ages.never == pytest.approx(1 - sum(sizes) / 60)


@pytest.mark.parametrize(
    ("method", "options", "moves_halo"),
    [
        ("gas", {}, False),
        ("graphfm-ob", {"beta": (0.0,)}, False),
        ("graphfm-ob", {"beta": (0.3,)}, True),
        ("graphfm-delta", {}, True),
    ],
)
def test_methods_that_move_the_halo_keep_it_young(make_graph, method, options, moves_halo):
    trainer = trainer_of(make_graph(undirected=True), method, exact_first_hop=False, **options)
    meter, batch = AgeMeter(trainer.method.estimator, 3, 60), sampled(trainer, 0)
    meter.saw(batch)
    reached = batch.input_ids if moves_halo else batch.target_ids
    assert batch.target_ids.numel() < batch.input_ids.numel()
    assert meter.summary(0).never == pytest.approx(1 - reached.numel() / 60)


def test_a_halo_row_below_the_threshold_is_not_written(make_graph):
    trainer = trainer_of(
        make_graph(undirected=True), "graphfm-ob", threshold=1, exact_first_hop=False
    )
    batch = sampled(trainer, 0)
    meter = AgeMeter(trainer.method.estimator, 3, 60)
    meter.saw(batch)
    many = batch.blocks[0].from_halo.edges.indptr.diff() > 1
    assert 0 < many.sum() < many.numel()
    written = batch.target_ids.numel() + int(many.sum())
    assert meter.summary(0).never == pytest.approx(1 - written / 60)


def watch_writes(monkeypatch, tables, pushed):
    """Mark in `pushed`, [depth, node], the rows that are written to some tables, in any way."""

    def push(table, ids, values, write=DeviceTable.push):
        if table in tables:
            pushed[tables[table], ids] = True
        write(table, ids, values)

    def add(table, ids, values, write=DeviceTable.add):
        pushed[tables[table], ids] = True
        write(table, ids, values)

    def blend(table, ids, values, beta, write=DeviceTable.blend):
        pushed[tables[table], ids] = True
        write(table, ids, values, beta)

    def put_outputs(table, ids, affine, sums, write=DeviceTable.put_outputs):
        if table in tables:
            pushed[tables[table], ids] = True
        write(table, ids, affine, sums)

    def spread(table, rows, view, blend=None, write=DeviceTable.spread):
        pushed[tables[table], view.dst_ids] = True
        write(table, rows, view, blend)

    monkeypatch.setattr(DeviceTable, "push", push)
    monkeypatch.setattr(DeviceTable, "put_outputs", put_outputs)
    monkeypatch.setattr(DeviceTable, "spread", spread)
    monkeypatch.setattr(DeviceTable, "blend", blend)
    monkeypatch.setattr(DeviceTable, "add", add)


@pytest.mark.parametrize("exact_first_hop", [False, True])
@pytest.mark.parametrize("method", METHODS_WITH_HISTORY)
def test_rows_are_as_old_as_they_are_said_to_be(make_graph, monkeypatch, method, exact_first_hop):
    """In a step, the rows that change are said to be written, and those said to be are."""
    options = {"batch_size": 4} if method in ("graphfm-ib", "vr-gcn", "mvs-gcn") else {}
    trainer = trainer_of(
        make_graph(undirected=True), method, exact_first_hop=exact_first_hop, **options
    )
    trainer.epoch()
    estimator, everyone = trainer.method.estimator, torch.arange(60)
    depths = len(trainer.backbone.layers)
    meter = AgeMeter(estimator, depths, 60)
    seeds = next(iter(trainer.method.sampler.epoch(trainer.rng)))
    state_of_rng = trainer.rng.get_state()
    batch = trainer.method.sampler.sample(seeds, trainer.rng)
    trainer.rng.set_state(state_of_rng)
    changed, pushed = torch.zeros(2, depths, 60, dtype=torch.bool)
    tables = {
        table: int(name.split(".")[1])
        for name, table in estimator.histories_by_name().items()
        if not name.startswith(("visits", "written", "inputs"))  # beside the histories
    }
    before = {table: table.pull(everyone) for table in tables}
    watch_writes(monkeypatch, tables, pushed)
    trainer.step(seeds)
    meter.saw(batch)
    for table, depth in tables.items():
        changed[depth] |= (table.pull(everyone) != before[table]).any(dim=1)
    written = meter.written > 0
    assert bool(changed.any())
    assert not bool(written.all())
    known = {0} if exact_first_hop else set()  # made anew by every step, and never old
    for depth in set(tables.values()) - known:
        assert not bool((changed & ~written)[depth].any())
        assert not bool((written & ~pushed)[depth].any())


def test_a_refresh_makes_every_row_young(make_graph):
    trainer = trainer_of(make_graph(undirected=True), "gas", staleness_every=1, parts=4)
    trainer.epoch()
    assert trainer.ages.summary(1).max > 0
    trainer.refresh_histories()
    assert trainer.ages.summary(1) == Ages(0.0, 0, 0.0)


def test_what_is_known_exactly_has_no_age(make_graph):
    trainer = trainer_of(make_graph(undirected=True), "gas", staleness_every=1)
    trainer.epoch()
    first, second = Loop(trainer)._staleness(1)
    assert "age" not in first
    assert second["age"] >= 0
