"""What is promised of every history: it is named, it is all there is, and it stays clean."""

import pytest
import torch

from graphfm import Graph, methods, train
from graphfm.backbones import make_backbone
from graphfm.tables.base import NodeTable
from graphfm.training.settings import NUMBER_TYPES, Training
from graphfm.training.trainer import Trainer

NEIGHBOR = {"fanout": (2,), "batch_size": 8}
CLUSTER = {"parts": 5, "parts_per_batch": 2}
CASES = {
    "graphfm-ib": NEIGHBOR,
    "vr-gcn": NEIGHBOR,
    "gas": CLUSTER,
    "graphfm-ob": CLUSTER,
    "graphfm-delta": CLUSTER,
    "gas, compensated": CLUSTER | {"compensate": True},
    "graphfm-ob, compensated": CLUSTER | {"compensate": True},
    "graphfm-delta, compensated": CLUSTER | {"compensate": True},
}
CLUSTER_CASES = [case for case, options in CASES.items() if "parts" in options]
NAMES = {  # of a network of three layers, whose first aggregate is known
    "graphfm-ib": {"aggregate.1", "aggregate.2", "visits.1", "visits.2"},
    "vr-gcn": {"input.1", "input.2"},
    "gas": {"output.0", "output.1"},
    "graphfm-ob": {"output.0", "output.1", "written.0", "written.1"},
    "graphfm-delta": {"known.1", "aggregate.1"},
}


@pytest.fixture
def graph(make_graph):
    return make_graph(undirected=True, weighted=True)


def trainer_of(graph, case, *, backbone="gcn", first_hop=True, seed=1, training=None, **network):
    torch.manual_seed(seed)
    options = {"layers": 3, "hidden": 8, "dropout": 0.0} | network
    net = make_backbone(backbone, graph.num_features, graph.num_classes, **options)
    net.calibrate(graph)
    make = methods.METHODS[case.split(",")[0]]
    method = make(**CASES[case], exact_first_hop=first_hop)
    return Trainer(graph, net, method, training or Training(seed=seed))


def tables_of(trainer):
    return trainer.method.estimator.histories_by_name()


def rows_of(trainer):
    """Without the sink, which holds nothing."""
    return {name: table.rows[:-1].clone() for name, table in tables_of(trainer).items()}


def copy_state(source, target):
    """Weights, histories, and what the next sample is drawn from; not Adam's moments."""
    target.backbone.load_state_dict(source.backbone.state_dict())
    ours, theirs = tables_of(source), tables_of(target)
    assert ours.keys() == theirs.keys()
    for name, table in ours.items():
        theirs[name].rows.copy_(table.rows)
    target.rng.set_state(source.rng.get_state())


def batch_of(trainer):
    """What a step is given: the same for the same state of the generator."""
    state = trainer.rng.get_state()
    seeds = next(iter(trainer.method.sampler.epoch(trainer.rng)))
    trainer.rng.set_state(state)
    return seeds


def step(trainer, seeds, noise=7):
    trainer.backbone.train()
    torch.manual_seed(noise)
    return trainer.step(seeds)


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


def test_visits_are_counted_in_short_histories_too(make_graph):
    """bf16 knows no number between 256 and 258."""
    graph = make_graph(12, 30)
    training = Training(history="bf16")
    trainer = trainer_of(graph, "graphfm-ib", training=training, layers=1, first_hop=False)
    seeds = trainer.method.sampler.train_ids
    for _ in range(300):
        trainer.step(seeds)
    assert trainer.method.estimator.visits[0].pull(seeds).unique().tolist() == [300.0]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("case", CASES)
def test_no_history_requires_a_gradient(graph, case, dropout):
    trainer = trainer_of(graph, case, dropout=dropout)
    for _ in range(2):
        trainer.epoch()
        for table in tables_of(trainer).values():
            rows = table.pull(torch.arange(5))
            assert not table.rows.requires_grad
            assert not rows.requires_grad
            assert table.rows.grad_fn is None
            assert table.rows.grad is None


@pytest.mark.parametrize("network", [{}, {"first_hop": False, "dropout_input": True}])
@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii"])
@pytest.mark.parametrize("case", CLUSTER_CASES)
def test_dropout_never_reaches_the_histories(graph, case, backbone, network):
    """Gradients aside, which are those of the loss as it was taken."""
    options = {"backbone": backbone} | network
    clean = trainer_of(graph, case, dropout=0.0, **options)
    noisy = trainer_of(graph, case, dropout=0.5, **options)
    clean.epoch()
    clean.epoch()
    copy_state(clean, noisy)
    seeds, losses = batch_of(clean), []
    for trainer in (clean, noisy):
        losses.append(step(trainer, seeds))
    assert losses[0] != losses[1]  # the dropout is there
    for name, rows in rows_of(clean).items():
        if not name.startswith("gradient."):
            assert torch.equal(rows, rows_of(noisy)[name]), name


@pytest.mark.parametrize("case", [case for case in CLUSTER_CASES if "compensated" in case])
def test_compensation_without_a_halo(graph, case):
    """All parts at once, or a part that reads nobody: there is nothing to compensate."""
    plain, compensated = case.split(",")[0], {"compensate": True}
    losses = []
    for options in ({}, compensated):
        torch.manual_seed(1)
        net = make_backbone("gcn", graph.num_features, graph.num_classes, layers=3, dropout=0.0)
        method = methods.METHODS[plain](parts=1, parts_per_batch=1, **options)
        trainer = Trainer(graph, net, method, Training())
        losses.append([trainer.epoch() for _ in range(3)])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("case", CLUSTER_CASES)
def test_a_halo_that_reads_nobody_spoils_nothing(case):
    """Node 0 is read by all and reads none: its share of nothing is not to be divided by."""
    edges = torch.tensor([[0] * 9 + list(range(1, 9)), [*range(1, 10), *range(2, 10)]])
    even = torch.arange(10) % 2 == 0
    graph = Graph.from_edges(
        edges, torch.randn(10, 3), torch.arange(10) % 3, train_mask=even, val_mask=~even
    )
    trainer = trainer_of(graph, case, backbone="sage", first_hop=False)
    for _ in range(3):
        assert torch.tensor(trainer.epoch()).isfinite()
    assert all(rows.isfinite().all() for rows in rows_of(trainer).values())


@pytest.mark.parametrize("name", ["gas", "graphfm-ob", "graphfm-delta"])
def test_compensation_survives_batches_that_teach_nothing(make_graph, name):
    graph = make_graph(undirected=True)
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
    mask[0] = True
    lonely = Graph.from_edges(
        graph.edge_index, graph.x, graph.y, train_mask=mask, val_mask=graph.val_mask,
        num_classes=graph.num_classes,
    )  # fmt: skip
    options = {"parts": 10, "parts_per_batch": 1, "layers": 3, "epochs": 3}
    result = train(lonely, method=name, compensate=True, **options)
    assert bool(torch.isfinite(result.model.predict(graph)).all())


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
