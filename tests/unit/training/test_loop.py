"""The training loop: which epoch is kept, when it stops, and what it records."""

import math

import pytest
import torch

from graphfm import Graph, InputError, memory
from graphfm.runs.run import Run, build
from graphfm.training import loop
from graphfm.training.callbacks import Callback, EpochRecord
from graphfm.training.settings import Training


class Notes(Callback):
    def __init__(self):
        self.records: list[EpochRecord] = []
        self.bests: list[dict[str, torch.Tensor]] = []

    def on_epoch(self, record, best):
        self.records.append(record)

    def on_best(self, backbone):
        self.bests.append({key: value.clone() for key, value in backbone.state_dict().items()})


def fit(graph, **options):
    trainer, notes = build(Run.make(**options), graph), Notes()
    return trainer, notes, loop.fit(trainer, [notes])


def test_the_best_epoch_on_validation_is_kept_and_reported(make_graph):
    trainer, notes, score = fit(make_graph(), epochs=30, lr=0.1)
    values = [record.val for record in notes.records]
    assert score.val == max(values)
    assert score.best_epoch == values.index(max(values)) + 1
    torch.testing.assert_close(trainer.backbone.state_dict(), notes.bests[-1], rtol=0, atol=0)
    assert trainer.evaluate() == {
        "train": trainer.evaluate(("train",))["train"], "val": score.val, "test": score.test,
    }  # fmt: skip


def test_test_nodes_have_no_say(make_graph):
    """Other test labels change the test score and nothing else."""
    graph = make_graph()
    y = torch.where(graph.test_mask, (graph.y + 1) % graph.num_classes, graph.y)
    other = Graph.from_edges(
        graph.edge_index, graph.x, y, train_mask=graph.train_mask, val_mask=graph.val_mask,
        test_mask=graph.test_mask, num_classes=graph.num_classes,
    )  # fmt: skip
    (_, first, score), (_, second, changed) = fit(graph, epochs=8), fit(other, epochs=8)
    assert [r.loss for r in first.records] == [r.loss for r in second.records]
    assert (score.val, score.best_epoch) == (changed.val, changed.best_epoch)
    torch.testing.assert_close(first.bests[-1], second.bests[-1], rtol=0, atol=0)


def test_stops_when_validation_stops_improving(make_graph):
    _, notes, score = fit(make_graph(), epochs=500, patience=4, lr=0.05)
    assert score.epochs == len(notes.records) == score.best_epoch + 4 < 500


def test_patience_zero_never_stops(make_graph):
    assert fit(make_graph(), epochs=70, patience=0, lr=0.5)[2].epochs == 70


def test_evaluates_as_often_as_asked_and_at_the_end(make_graph):
    _, notes, score = fit(make_graph(), epochs=7, eval_every=3)
    assert [r.epoch for r in notes.records if r.val is not None] == [3, 6, 7]
    assert score.best_epoch in (3, 6, 7)


def test_schedules(make_graph):
    cosine = Training(schedule="cosine", epochs=10)
    assert cosine.factor(0) == 1
    assert cosine.factor(5) == pytest.approx(0.5)
    assert cosine.factor(10) == pytest.approx(0)
    step = Training(schedule="step")
    assert [step.factor(k) for k in (0, 29, 30, 60)] == [1, 1, 0.5, 0.25]
    _, notes, _ = fit(make_graph(), epochs=4, schedule="cosine", lr=0.2)
    want = [0.1 * (1 + math.cos(math.pi * k / 4)) for k in range(4)]
    assert [record.lr for record in notes.records] == pytest.approx(want)


def test_a_loss_that_explodes_ends_with_advice(make_graph):
    trainer = build(Run.make(epochs=5), make_graph())
    with torch.no_grad():
        next(iter(trainer.backbone.parameters())).fill_(math.nan)
    with pytest.raises(InputError, match="loss is nan in epoch 1; lower lr"):
        loop.fit(trainer)


def test_only_training_nodes_teach(make_graph):
    """A graph whose other labels are unknown gives the same gradient."""
    graph = make_graph()
    hidden = torch.where(graph.train_mask | graph.val_mask, graph.y, -1)
    blind = Graph.from_edges(
        graph.edge_index, graph.x, hidden, train_mask=graph.train_mask, val_mask=graph.val_mask,
        num_classes=graph.num_classes,
    )  # fmt: skip
    losses = [[r.loss for r in fit(g, epochs=3)[1].records] for g in (graph, blind)]
    assert losses[0] == losses[1]


def test_a_step_that_explodes_is_not_taken_for_a_model(make_graph):
    with pytest.raises(InputError, match="not finite in epoch 1"):
        fit(make_graph(), epochs=1, lr=1e6, layers=8)


def test_seconds_per_epoch_is_the_median(make_graph, monkeypatch):
    ticks = iter([0, 0.5, 1, 2, 10, 12, 20, 29])  # preparation, epochs of 1, 2 and 9 seconds
    monkeypatch.setattr("graphfm.training.trainer.time.perf_counter", lambda: next(ticks))
    score = fit(make_graph(), epochs=3)[2]
    assert (score.seconds_per_epoch, score.prepare_seconds) == (2, 0.5)
    assert score.seconds_to_best == 0.5 + sum([1, 2, 9][: score.best_epoch])


def test_no_epoch_begins_when_the_time_is_up(make_graph, monkeypatch):
    ticks = iter([0, 0, *(second for e in range(9) for second in (10 * e, 10 * e + 3))])
    monkeypatch.setattr("graphfm.training.trainer.time.perf_counter", lambda: next(ticks))
    _, notes, score = fit(make_graph(), epochs=9, max_seconds=7.0, eval_every=9)
    assert score.epochs == 3  # of three seconds each
    assert notes.records[-1].val is not None  # evaluated, though it was not its turn


def test_what_a_step_touches_is_counted(make_graph):
    graph = make_graph()
    score = fit(graph, epochs=2)[2]
    assert (score.nodes_per_step, score.edges_per_step) == (60, 2 * graph.num_edges)
    options = {"method": "graphsage", "fanout": (100,), "batch_size": 512, "epochs": 1}
    some, _, few = fit(graph, **options)
    last = some.method.sampler.adjacency.block(graph.train_mask.nonzero().squeeze(1))
    edges = int(graph.degree[last.src_ids].sum())
    assert few.edges_per_step == edges + last.edges.num_edges
    assert few.nodes_per_step == last.num_src + edges  # which it read in place
    dropped = fit(graph, dropout_input=True, **options)[2]  # not so, and each node once
    reached = some.method.sampler.adjacency.block(last.src_ids).num_src
    assert (dropped.nodes_per_step, dropped.edges_per_step) == (reached, few.edges_per_step)


def test_staleness_is_recorded_as_often_as_asked(make_graph):
    graph = make_graph(undirected=True)
    options = {"method": "gas", "parts": 4, "exact_first_hop": False, "layers": 3, "epochs": 4}
    _, notes, _ = fit(graph, staleness_every=2, **options)
    measured = [record.staleness for record in notes.records]
    assert [m is not None for m in measured] == [False, True, False, True]
    assert [layer["depth"] for layer in measured[1]] == [1, 2]
    assert all(layer["score"] > 0 and layer["relative"] > 0 for layer in measured[3])
    assert all(0 <= layer["age"] <= layer["oldest"] < 8 for layer in measured[3])
    assert all(layer["never_written"] == 0 for layer in measured[1])  # an epoch visits everyone


class FakeMeter:
    """Knows whether it is measuring; refuses to start or to stop twice."""

    def __init__(self):
        self.measures, self.measured = True, 7

    def start(self):
        assert not self.measures
        self.measures = True

    def stop(self):
        assert self.measures
        self.measures = False

    def peak(self):
        return 9


class OftenDue:
    """Is asked for a checkpoint after every step, and writes none."""

    def restore(self, trainer, progress):
        pass

    def is_due(self, trainer):
        return True

    keep = finish = restore


def test_the_memory_of_training_is_that_of_preparation_and_steps_alone(make_graph, monkeypatch):
    trainer = build(
        Run.make(method="gas", parts=4, epochs=3, refresh_histories=True, staleness_every=1),
        make_graph(),
    )
    trainer.memory = meter = FakeMeter()
    seen = dict[str, set[bool]]()

    def watch(owner, name):
        original = getattr(owner, name)

        def watched(*args, **kwargs):
            seen.setdefault(name, set()).add(meter.measures)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    for name in ("step", "outputs", "refresh_histories"):
        watch(trainer, name)
    watch(loop, "staleness")
    watch(checkpointer := OftenDue(), "keep")
    score = loop.fit(trainer, [Notes()], checkpointer)
    assert seen == {
        "step": {True}, "outputs": {False}, "refresh_histories": {False}, "staleness": {False},
        "keep": {False},
    }  # fmt: skip
    assert (score.train_bytes, score.peak_bytes) == (7, 9)


@pytest.mark.skipif(not memory._forget_resident(), reason="this system cannot reset its peak")
def test_what_an_evaluation_takes_is_in_the_memory_of_the_whole_alone(make_graph, monkeypatch):
    trainer = build(Run.make(method="graphsage", epochs=2), make_graph())
    large, outputs = 400 * 2**20, trainer.outputs

    def hungry(split):
        torch.ones(large, dtype=torch.uint8)  # given back to the system at once
        return outputs(split)

    monkeypatch.setattr(trainer, "outputs", hungry)
    score = loop.fit(trainer)
    assert 0 < score.train_bytes < score.peak_bytes - large // 2
