"""The staleness score: by hand, after a refresh, after a step; and the age of rows."""

import pytest
import torch

from graphfm import Graph
from graphfm.estimators.halo_history import HaloHistory
from graphfm.methods import METHODS
from graphfm.runs.run import Run, build
from graphfm.tables.device import DeviceTable
from graphfm.training.loop import Loop
from graphfm.training.staleness import AgeMeter, Ages, compare, staleness

CLUSTER = ("gas", "graphfm-ob", "graphfm-delta")
METHODS_WITH_HISTORY = (*CLUSTER, "graphfm-ib", "vr-gcn", "mvs-gcn")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def trainer_of(graph, method, **options):
    if method in CLUSTER:
        options = {"parts": 6, "parts_per_batch": 2, **options}
    elif method == "mvs-gcn":
        options = {"nodes_per_layer": (5,), "batch_size": 8, **options}
    elif method != "full":
        options = {"fanout": (2,), "batch_size": 8, **options}
    options = {"backbone": "gcn", "layers": 3, "hidden": 8, "dropout": 0.0, **options}
    return build(Run.make(method=method, device="cpu", **options), graph)


def state(trainer):
    tables = {
        name: table.rows.clone()
        for name, table in trainer.method.estimator.histories_by_name().items()
    }
    weights = {key: value.clone() for key, value in trainer.backbone.state_dict().items()}
    return weights, tables, trainer.rng.get_state(), torch.get_rng_state()


@pytest.mark.parametrize("first_hop", [False, True])
@pytest.mark.parametrize("backbone", ["sage", "gcnii"])
@pytest.mark.parametrize("method", METHODS_WITH_HISTORY)
def test_zero_when_fresh_and_above_once_weights_move(make_graph, method, backbone, first_hop):
    graph = make_graph(undirected=True)
    options = {"batch_norm": True, "dropout": 0.3, "exact_first_hop": first_hop}
    trainer = trainer_of(graph, method, backbone=backbone, **options)
    trainer.epoch()
    trainer.refresh_histories()
    for layer in staleness(trainer):
        assert layer.score < 1e-5, layer
        assert layer.relative < 1e-5, layer
    with torch.no_grad():
        for parameter in trainer.backbone.parameters():
            parameter.mul_(1.1)
    measured = staleness(trainer)
    last = measured[-1]  # a first layer may be known exactly
    assert last.score > 1e-3
    assert last.relative > 1e-3
    outputs = method in CLUSTER
    known = first_hop and backbone == "sage" and not outputs
    assert [layer.depth for layer in measured] == ([1, 2] if outputs else [1, 2, 3][known:])


def test_score_by_hand():
    """A path 0 - 1 - 2, the mean of neighbours, weights that double: rows are plain numbers."""
    graph = Graph.from_edges(
        [[0, 1], [1, 2]],
        torch.tensor([[1.0], [2.0], [6.0]]),
        torch.zeros(3, dtype=torch.int64),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, True, False]),
        num_classes=1,
        undirected=True,
    )
    options = {"backbone": "sage", "layers": 2, "hidden": 1, "parts": 1, "parts_per_batch": 1}
    trainer = trainer_of(graph, "gas", exact_first_hop=False, **options)
    first = trainer.backbone.layers[0]
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[2.0, 0.0]]))  # of neighbours, of the node itself
        first.bias.zero_()
    trainer.method.estimator.histories[0].rows[:3] = torch.tensor([[3.0], [7.0], [8.0]])
    # neighbours' means: 2, (1 + 6) / 2, 2; doubled: 4, 7, 4; off by 1, 0 and 4
    (layer,) = staleness(trainer)
    assert layer.depth == 1
    assert layer.score == pytest.approx(5 / 3)
    assert layer.relative == pytest.approx((17 / 81) ** 0.5)


def test_score_is_a_mean_of_distances_over_nodes():
    believed = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    exact = torch.tensor([[3.0, 4.0], [3.0, 4.0], [1.0, 0.0]])
    layer = compare(1, exact, believed)
    assert (layer.depth, layer.score) == (2, pytest.approx(2.0))
    assert layer.relative == pytest.approx((26 / 51) ** 0.5)
    nothing = torch.zeros(2, 2)
    assert compare(0, nothing, nothing).relative == 0
    assert compare(0, nothing, nothing + 1).relative == float("inf")


@pytest.mark.parametrize("method", ["full", "graphsage"])
def test_a_method_without_histories_has_no_staleness(make_graph, method):
    assert staleness(trainer_of(make_graph(), method)) == []


@pytest.mark.parametrize("method", METHODS_WITH_HISTORY)
def test_measuring_changes_nothing(make_graph, method):
    trainer = trainer_of(make_graph(undirected=True), method, batch_norm=True, dropout=0.5)
    trainer.epoch()
    trainer.backbone.layers[0].eval()  # a mode of its own
    modes, before = [m.training for m in trainer.backbone.modules()], state(trainer)
    assert staleness(trainer) == staleness(trainer)
    torch.testing.assert_close(state(trainer), before, rtol=0, atol=0)
    assert [m.training for m in trainer.backbone.modules()] == modes


def test_score_uses_evaluation_mode(make_graph):
    """Dropout and the mode of the network make no difference."""
    trainer = trainer_of(make_graph(undirected=True), "gas", batch_norm=True, dropout=0.5)
    trainer.epoch()
    training = staleness(trainer)
    trainer.backbone.eval()
    assert staleness(trainer) == training


def test_rows_that_were_never_written_count_as_they_are(make_graph):
    """Before the first step histories are zero: all of the exact rows is missing."""
    trainer = trainer_of(make_graph(), "gas", exact_first_hop=False)
    assert [layer.relative for layer in staleness(trainer)] == pytest.approx([1.0, 1.0])


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
        if not name.startswith(("visits", "written"))
    }
    before = {table: table.pull(everyone) for table in tables}

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


def test_every_method_that_keeps_a_history_is_tested_here():
    keeping = {name for name, make in METHODS.items() if make().estimator.keeps_history}
    assert keeping == set(METHODS_WITH_HISTORY)
    assert HaloHistory().history_of == "output"
