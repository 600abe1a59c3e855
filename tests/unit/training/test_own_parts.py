"""A loss, an optimizer and a schedule of the user's own, gradients of several steps, callbacks."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

import graphfm
from graphfm import Callback, InputError
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.runs.run import Run
from tests.reliability.runs import StopAfter, differences

SMALL = {"hidden": 8, "epochs": 4, "eval_every": 1, "lr": 0.01}


@pytest.fixture(autouse=True)
def _no_picture(monkeypatch):
    """Pictures take longer than these trainings."""
    monkeypatch.setattr("graphfm.runs.curves.draw_curves", lambda *given: given[2].touch())


def plain(outputs, y):
    return cross_entropy(outputs, y, reduction="none")


def rmsprop(parameters):
    return torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5)


def falling(epoch):
    return 1 / (1 + epoch)


def weights(result):
    return list(result.model.backbone.parameters())


@pytest.mark.parametrize("method", ["full", "graphfm-ib", "gas", "graphsaint", "mvs-gcn"])
def test_plain_cross_entropy_as_ones_own_loss_changes_nothing(make_graph, method):
    graph = make_graph()
    usual, own = (
        graphfm.train(graph, method=method, **SMALL, **more) for more in ({}, {"loss": plain})
    )
    for p, q in zip(weights(usual), weights(own), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_class_weights_join_ones_own_loss(make_graph):
    graph, balanced = make_graph(), {"class_weights": ("balanced",)}
    usual, own = (
        graphfm.train(graph, **SMALL, **balanced, **more) for more in ({}, {"loss": plain})
    )
    for p, q in zip(weights(usual), weights(own), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_rows_without_a_label_get_label_0_and_do_not_count(make_graph):
    graph = make_graph()
    y = graph.y.clone()
    y[5::7] = -1
    gaps = graphfm.Graph.from_edges(
        graph.edge_index, graph.x, y, num_classes=4,
        train_mask=graph.train_mask & (y >= 0), val_mask=graph.val_mask & (y >= 0),
    )  # fmt: skip
    seen = []

    def watched(outputs, y):
        seen.append(int(y.min()))
        return plain(outputs, y)

    usual, own = (graphfm.train(gaps, **SMALL, **m) for m in ({}, {"loss": watched}))
    assert set(seen) == {0}
    for p, q in zip(weights(usual), weights(own), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_ones_own_loss_of_labels_and_of_a_regression(make_graph):
    def of_labels(outputs, y):
        losses = binary_cross_entropy_with_logits(outputs, y.float(), reduction="none")
        return losses.mean(dim=1)

    labels = make_graph(multi_label=True)
    usual, own = (graphfm.train(labels, **SMALL, **m) for m in ({}, {"loss": of_labels}))
    for p, q in zip(weights(usual), weights(own), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)

    def on_the_scale_of_the_targets(outputs, y):
        assert outputs.mean() > 500
        assert outputs.shape == y.shape
        return mse_loss(outputs, y, reduction="none").squeeze(1) / 100

    amounts = graphfm.Graph.from_edges(
        labels.edge_index, labels.x, 1000 + 50 * labels.x[:, 0],
        train_mask=labels.train_mask, val_mask=labels.val_mask,
    )  # fmt: skip
    score = graphfm.train(amounts, loss=on_the_scale_of_the_targets, **SMALL).score
    assert score.metric == "r2"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loss": cross_entropy}, "the loss returned shape .* for 60 rows; expected .* each row"),
        ({"optimizer": lambda parameters: None}, "optimizer returned a NoneType; expected a torch"),
        (
            {"optimizer": lambda given: torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)},
            "optimizer holds other parameters",
        ),
        ({"accumulate": 0}, "accumulate is 0; expected 1 or more"),
    ],
)
def test_what_is_not_a_part_is_refused(make_graph, wrong, message):
    with pytest.raises(InputError, match=message):
        graphfm.train(make_graph(), hidden=8, epochs=2, **wrong)


def test_ones_own_schedule_sets_the_rate(make_graph):
    class Rates(Callback):
        found: list[float] = []  # noqa: RUF012

        def on_epoch(self, record, best):
            self.found.append(record.lr)

    graphfm.train(make_graph(), schedule=falling, callbacks=[Rates()], **SMALL)
    assert Rates.found == pytest.approx([0.01, 0.005, 0.01 / 3, 0.0025])


@pytest.mark.parametrize("method", ["graphfm-ib", "gas"])
@pytest.mark.parametrize(
    "parts",
    [
        {"optimizer": rmsprop, "schedule": falling, "loss": plain},
        {"accumulate": 3},
        {"accumulate": 2, "optimizer": rmsprop},
    ],
)
def test_stopped_anywhere_it_ends_the_same(make_graph, tmp_path, method, parts):
    graph = make_graph()
    small = {"batch_size": 7} if method == "graphfm-ib" else {"parts": 6, "parts_per_batch": 1}
    run = Run.make(dataset="in-memory", method=method, **small, **SMALL, **parts)
    whole = start(run, graph, out=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        start(run, graph, out=tmp_path / "cut", stop_signal=StopAfter(8))
    own = {name: part for name, part in parts.items() if callable(part)}
    if own:
        name = min(own)
        with pytest.raises(InputError, match=f"your own {name}, .*:{own[name].__name__}; give it"):
            graphfm.resume(tmp_path / "cut", graph, **{k: v for k, v in own.items() if k != name})
    else:
        with pytest.raises(InputError, match="made without your own loss; leave it out"):
            graphfm.resume(tmp_path / "cut", graph, loss=plain)
    graphfm.resume(tmp_path / "cut", graph, **own)
    assert differences(tmp_path / "whole", tmp_path / "cut") == []
    assert whole.score.epochs == 4


def test_single_gaps_reach_ones_own_loss(make_graph):
    graph = make_graph(multi_label=True)
    y = graph.y.clone()
    y[::3, 1] = -1
    gaps = graphfm.Graph.from_edges(
        graph.edge_index, graph.x, y, train_mask=graph.train_mask, val_mask=graph.val_mask
    )

    def of_known(outputs, y):
        losses = binary_cross_entropy_with_logits(
            outputs, y.clamp(min=0).to(outputs.dtype), reduction="none"
        )
        return (losses * (y >= 0)).sum(1) / (y >= 0).sum(1).clamp(min=1)

    usual, own = (graphfm.train(gaps, **SMALL, **m) for m in ({}, {"loss": of_known}))
    for p, q in zip(weights(usual), weights(own), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"accumulate": 2, "node_features": "learned"}, "learned rows move at every step"),
        ({"optimizer": rmsprop, "node_features": "learned"}, "moves weights, not learned rows"),
        ({"optimizer": rmsprop, "weight_decay": 0.1}, "weight_decay has no effect beside your own"),
        ({"schedule": falling, "warmup": 1}, "warmup has no effect beside your own schedule"),
        ({"loss": plain, "label_smoothing": 0.1}, "label_smoothing has no effect beside your own"),
        ({"schedule": lambda epoch: None}, "the schedule returned None; expected a number"),
        ({"schedule": lambda epoch: -1.0}, "the schedule returned -1.0; expected a number"),
    ],
)
def test_what_would_have_no_effect_is_refused(make_graph, settings, message):
    rate = {} if "optimizer" in settings else {"lr": 0.01}
    with pytest.raises(InputError, match=message):
        graphfm.train(make_graph(), hidden=8, epochs=2, **rate, **settings)


def test_class_weights_of_labels_are_refused_beside_ones_own_loss(make_graph):
    with pytest.raises(InputError, match="weigh single labels"):
        graphfm.train(make_graph(multi_label=True), loss=plain, class_weights="balanced", **SMALL)


@pytest.mark.parametrize("name", ["compare", "tune"])
def test_functions_do_not_reach_the_processes_of_a_comparison(make_graph, tmp_path, name):
    make_graph().save(tmp_path / "graph.npz")
    more = {"budget_epochs": 1} if name == "compare" else {"trials": 1}
    with pytest.raises(InputError, match="loss is a function, which cannot be sent"):
        getattr(graphfm, name)(tmp_path / "graph.npz", ["full"], loss=plain, **more)


def test_another_part_than_that_of_the_run_is_refused(make_graph, tmp_path):
    run = Run.make(dataset="in-memory", loss=plain, **SMALL)
    with pytest.raises(TrainingStopped):
        start(run, make_graph(), out=tmp_path / "cut", stop_signal=StopAfter(2))
    with pytest.raises(InputError, match="made with the loss .*:plain, but .*:rmsprop was given"):
        graphfm.resume(tmp_path / "cut", make_graph(), loss=rmsprop)
    result = graphfm.resume(tmp_path / "cut", make_graph(), loss=plain)
    again = graphfm.resume(tmp_path / "cut", make_graph())  # a finished run is only read
    assert again.score == result.score


@pytest.mark.parametrize(
    "weights",
    [{0: 2.0, 1: 1.0, 2: 1.0, 3: 0.5}, [2.0, 1.0, 1.0, 0.5], torch.tensor([2, 1, 1, 0.5])],
)
def test_class_weights_are_given_as_python_programs_have_them(make_graph, weights):
    result = graphfm.train(make_graph(), class_weights=weights, **SMALL)
    assert result.run.training.class_weights[0] in ("0=2", "0=2.0")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"optimizer": torch.optim.SGD([torch.zeros(1)], 0.1)}, "optimizer is a SGD; expected a"),
        ({"schedule": torch.optim.lr_scheduler.StepLR}, "the schedule cannot be called with an ep"),
        ({"callbacks": [print]}, "callbacks holds a builtin_function_or_method; expected"),
    ],
)
def test_objects_that_do_not_fit_are_one_line(make_graph, wrong, message):
    with pytest.raises(InputError, match=message):
        graphfm.train(make_graph(), hidden=8, epochs=2, **wrong)


def test_the_rate_of_ones_own_optimizer_stays(make_graph):
    result = graphfm.train(make_graph(), hidden=8, epochs=2, optimizer=rmsprop)
    assert result.run.training.schedule == "constant"
