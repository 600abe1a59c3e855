"""Methods and backbones of a user's own, from Python, without a change or a patch of ours."""

import json
import sys
from dataclasses import replace

import pytest
import torch

import graphfm
from graphfm import InputError, Method
from graphfm.estimators.base import Estimator
from graphfm.experiments.compare import Plan
from graphfm.samplers.full import FullSampler
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.training.callbacks import Callback

SHORT = {"epochs": 3, "hidden": 8, "device": "cpu"}


class StopAfterOne(Callback):
    def on_epoch(self, record, best):
        raise KeyboardInterrupt


def config(path) -> dict:
    return json.loads((path / "config.json").read_text())["run"]


@pytest.mark.parametrize("how", ["object", "name"])
def test_a_function_and_a_class_train_like_ours(make_graph, mine, name, tmp_path, how):
    method = mine.smoothed if how == "object" else f"{name}:smoothed"
    backbone = mine.Scaled if how == "object" else f"{name}:Scaled"
    graph, out = make_graph(), tmp_path / "run"
    result = graphfm.train(
        graph, method=method, backbone=backbone, decay=0.5, scale=2, out=out, **SHORT
    )
    record = config(out)
    assert (record["method"], record["backbone"]) == (f"{name}:smoothed", f"{name}:Scaled")
    assert (record["method_settings"]["decay"], record["backbone_settings"]["scale"]) == (0.5, 2.0)
    model = graphfm.load_model(out, backbone=backbone)
    assert torch.equal(model.predict(graph), result.model.predict(graph))
    again = graphfm.resume(out, graph, method=method, backbone=backbone)
    assert again.score == replace(result.score, staleness=again.score.staleness)


def test_an_interrupted_run_goes_on_with_the_same_numbers(make_graph, mine, tmp_path):
    graph, options = make_graph(), {**SHORT, "epochs": 4, "method": mine.smoothed}
    whole = graphfm.train(graph, **options, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        graphfm.train(
            graph, **options, out=tmp_path / "cut", callbacks=[StopAfterOne()],
            checkpoint_every="1steps",
        )  # fmt: skip
    result = graphfm.resume(tmp_path / "cut", graph, method=mine.smoothed)
    assert (result.score.val, result.score.test) == (whole.score.val, whole.score.test)


def test_a_method_object_is_recorded_by_its_classes_and_settings(make_graph, mine, name, tmp_path):
    graph, out = make_graph(), tmp_path / "run"

    def method(decay):
        return Method(NeighborSampler(fanout=(2,), batch_size=8), mine.Smoothed(decay=decay))

    given = method(0.5)
    result = graphfm.train(graph, method=given, out=out, **SHORT)
    record = config(out)
    assert record["method"] == "Method(NeighborSampler, Smoothed)"
    assert record["method_settings"]["estimator"] == {
        "class": f"{name}:Smoothed", "settings": {"decay": 0.5},
    }  # fmt: skip
    assert not hasattr(given.estimator, "last"), "the caller's object was trained with"
    assert graphfm.resume(out, graph, method=method(0.5)).score.val == result.score.val
    with pytest.raises(InputError, match="has other settings than that of the run; expected .*0.5"):
        graphfm.resume(out, graph, method=method(0.6))
    with pytest.raises(InputError, match=r"made with a method object.*resume\(path, method=\.\.\."):
        graphfm.resume(out, graph)
    graphfm.load_model(out)  # takes no method


def test_a_method_object_that_cannot_be_recorded_is_refused(make_graph):
    class Hidden(Estimator):
        def __init__(self, table):
            self._table = table

    with pytest.raises(InputError, match="table of Hidden cannot be written to config.json"):
        graphfm.train(make_graph(), method=Method(FullSampler(), Hidden(3)), **SHORT)


def test_two_trainings_of_one_method_object_share_nothing(make_graph, mine):
    graph, method = make_graph(), Method(NeighborSampler(fanout=(2,), batch_size=8))
    first, second = (graphfm.train(graph, method=method, **SHORT).score for _ in range(2))
    assert (first.val, first.test) == (second.val, second.test)


@pytest.mark.parametrize("what", ["method", "backbone"])
def test_what_a_folder_names_is_not_imported(make_graph, tmp_path, monkeypatch, what):
    """A forged run: the module would leave a file behind if anything imported it."""
    graph, out = make_graph(), tmp_path / "run"
    graphfm.train(graph, out=out, **SHORT)
    (out / "result.json").unlink()
    record = json.loads((out / "config.json").read_text())
    record["run"][what] = "forged_module:attack"
    (out / "config.json").write_text(json.dumps(record))
    (tmp_path / "forged_module.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    said = rf"made with {what} forged_module:attack, .*add --{what} forged_module:attack, or in P"
    with pytest.raises(InputError, match=said):
        graphfm.resume(out, graph)
    if what == "backbone":
        with pytest.raises(InputError, match=said):
            graphfm.load_model(out)
    else:
        graphfm.load_model(out)
    assert not (tmp_path / "ran").exists()
    assert "forged_module" not in sys.modules


def test_another_name_than_the_recorded_one_is_refused(make_graph, mine, name, tmp_path):
    graph, out = make_graph(), tmp_path / "run"
    graphfm.train(graph, method=mine.smoothed, backbone=mine.Scaled, out=out, **SHORT)
    with pytest.raises(InputError, match=rf"method {name}:smoothed, but graphsage was given; give"):
        graphfm.resume(out, graph, method="graphsage", backbone=mine.Scaled)
    with pytest.raises(InputError, match=rf"backbone {name}:Scaled, but sage was given"):
        graphfm.load_model(out, backbone="sage")


# Comparing, in processes of their own


def compared(tmp_path, methods, **options):
    return graphfm.compare(
        "synthetic:small:0.02", methods, seeds=1, budget_epochs=2, hidden=8, device="cpu",
        out=tmp_path / "compared", **options,
    )  # fmt: skip


def test_functions_classes_and_objects_reach_the_processes_of_a_comparison(tmp_path, mine, name):
    given = Method(NeighborSampler(fanout=(3,), batch_size=64), mine.Smoothed(decay=0.9))
    rows = compared(tmp_path, ["full", mine.smoothed, given], backbone=mine.Scaled, scale=0.5)
    assert [row.note for row in rows] == ["", "", ""]
    assert [len(row.scores) for row in rows] == [1, 1, 1]
    assert [row.method for row in rows] == [
        "full", f"{name}:smoothed", "Method(NeighborSampler, Smoothed)",
    ]  # fmt: skip
    same = graphfm.train(
        "synthetic:small:0.02", method=mine.smoothed, backbone=mine.Scaled, scale=0.5,
        patience=10, **{**SHORT, "epochs": 2},
    )  # fmt: skip
    assert rows[1].scores[0].val == same.score.val


@pytest.mark.parametrize("kind", ["lambda", "closure", "interactive"])
def test_what_no_process_could_find_is_refused_before_anything_starts(tmp_path, mine, kind):
    def closure(*, fanout: tuple[int, ...] = (2,)) -> Method:
        return mine.smoothed(fanout=fanout)

    method = {"lambda": lambda: mine.smoothed(), "closure": closure}.get(kind, mine.smoothed)
    if kind == "interactive":
        method.__module__ = "__console__"
    with pytest.raises(InputError, match="put it at the top level of a module"):
        compared(tmp_path, ["full", method])
    assert not (tmp_path / "compared").exists()
    assert graphfm.train("synthetic:small:0.02", method=method, **SHORT).score.epochs == 3


def test_a_module_that_a_process_cannot_import_ends_the_comparison(tmp_path, mine, name):
    plan = Plan.make(
        dataset="synthetic:small:0.02", methods=[mine.smoothed], seeds=2, budget_epochs=1
    )
    (tmp_path / f"{name}.py").write_text("raise ImportError('it was moved')")
    from graphfm.experiments.compare import compare

    with pytest.raises(InputError, match=f"importing module {name} failed: ImportError: it was mo"):
        compare(plan, tmp_path / "compared")


def test_a_graph_in_memory_cannot_be_compared_on(make_graph):
    with pytest.raises(InputError, match=r"save it \(graph.save\) and give the .npz file"):
        graphfm.compare(make_graph(), ["full"])
