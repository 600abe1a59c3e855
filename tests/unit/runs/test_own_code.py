"""Methods and backbones of a user's own, from Python, without a change or a patch of ours."""

import importlib
import json
import sys
from dataclasses import replace
from itertools import count

import pytest
import torch

import graphfm
from graphfm import InputError, Method
from graphfm.estimators.base import Estimator
from graphfm.experiments.compare import Plan
from graphfm.runs.run import Run
from graphfm.samplers.full import FullSampler
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.training.callbacks import Callback
from tests.own_module import write_module

NUMBERS = count()
SHORT = {"epochs": 3, "hidden": 8, "device": "cpu"}


@pytest.fixture
def name(tmp_path, monkeypatch) -> str:
    """The name of the user's module, which can be imported and was not yet."""
    name = f"users_module_{next(NUMBERS)}"
    write_module(tmp_path, name)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.fixture
def mine(name):
    return importlib.import_module(name)


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "nowhere_at_all:x"}, "no module named nowhere_at_all"),
        ({"method": "{name}.sub:x"}, "no module named {name}.sub"),
        ({"method": "{name}.py:x"}, "name the module, not its file: {name}:x"),
        ({"method": "{name}:nothing"}, "module {name} has no function or class nothing"),
        ({"method": "{name}:not_a_function"}, "method is a int; expected a name"),
        ({"method": "{name}:broken"}, "{name}:broken returned a list; expected a graphfm.Method"),
        ({"method": "{name}:needy"}, "method {name}:needy needs a value for level"),
        ({"method": "{name}:greedy"}, "{name}:greedy has a setting device, a name that train uses"),
        ({"method": "{name}:twice"}, "hidden is a setting of {name}:twice and of backbone sage"),
        ({"method": "{name}:smoothed", "decay": "x"}, "decay is 'x'; expected a number"),
        ({"method": "{name}:smoothed", "mode": "x"}, "mode is x; expected fast or slow"),
        ({"method": "{name}:smoothed", "scale": 1.0}, "scale is not a setting of backbone sage or"),
        ({"method": "{name}:Smoothed"}, "{name}:Smoothed returned a Smoothed; expected a graphfm"),
        ({"method": 7}, "method is a int; expected a name, 'package.module:function'"),
        ({"method": "not a name"}, "unknown method 'not a name'; choose one of full"),
        ({"backbone": "{name}:smoothed"}, "backbone is a function; expected a name"),
        ({"backbone": dict}, "backbone is the class dict; expected a name"),
    ],
)
def test_a_wrong_method_or_backbone_is_one_clear_error(name, options, said):
    given = {k: v.format(name=name) if isinstance(v, str) else v for k, v in options.items()}
    with pytest.raises(InputError, match=said.format(name=name)):
        Run.make(**given)


def test_a_module_that_cannot_be_imported_says_why(tmp_path, monkeypatch):
    (tmp_path / "users_broken_module.py").write_text("import nothing_like_that")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="importing module users_broken_module failed: ModuleNotF"):
        Run.make(method="users_broken_module:x")


def test_types_come_from_annotations(mine):
    run = Run.make(
        method=mine.smoothed, decay=1, weights=[0.5, 2], limit=3, strict=True, mode="slow"
    )
    settings = run.method_settings
    assert (settings["decay"], settings["weights"]) == (1.0, (0.5, 2.0))
    assert (settings["limit"], settings["strict"], settings["mode"]) == (3, True, "slow")
    assert Run.make(method=mine.smoothed).method_settings["limit"] is None


def test_our_own_functions_are_known_by_their_names():
    from graphfm.backbones import GCN
    from graphfm.methods import graphsage, sign

    run = Run.make(method=graphsage, backbone=GCN)
    assert (run.method, run.backbone) == ("graphsage", "gcn")
    assert Run.make(method=sign).backbone == "sign"


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


# What help shows


def test_help_of_train_lists_every_setting():
    import inspect

    from graphfm.runs.options import train_options

    parameters = inspect.signature(graphfm.train).parameters
    options = train_options()
    assert len(options) > 50
    for name, option in options.items():
        assert parameters[name].annotation not in (inspect.Parameter.empty, None)
        assert f"    {name}: " in graphfm.train.__doc__
        assert f"Default: {option.default}." in " ".join(graphfm.train.__doc__.split())
    assert parameters["lr"].default == 0.01
    assert parameters["hidden"].default == 128
    assert parameters["beta"].default is None  # differs from method to method
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
