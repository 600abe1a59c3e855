"""Own code that changes between two starts of a run or a comparison."""

import importlib
import json

import graphfm
from graphfm.experiments.compare import Plan
from graphfm.runs.run import Run

SHORT = {"epochs": 2, "hidden": 8, "device": "cpu"}


def change(module) -> None:
    """Edit the user's file, and import it as a new process would."""
    with open(module.__file__, "a") as file:
        file.write("\nCHANGED = True\n")
    importlib.reload(module)


def test_changed_code_is_trained_again_in_a_comparison(mine):
    options = {"methods": [mine.smoothed, "full"], "seeds": 1, "device": "cpu"}
    before = {cell.run.method: cell.key for cell in Plan.make(**options).cells}
    assert before == {cell.run.method: cell.key for cell in Plan.make(**options).cells}
    change(mine)
    options["methods"] = [mine.smoothed, "full"]
    after = {cell.run.method: cell.key for cell in Plan.make(**options).cells}
    assert after["full"] == before["full"]
    assert after.keys() == before.keys()
    assert set(after.values()) & set(before.values()) == {before["full"]}


def test_code_that_changes_while_a_comparison_runs_loses_no_row(mine):
    plan = Plan.make(methods=[mine.smoothed, "full"], seeds=2, device="cpu")
    before = [cell.key for cell in plan.cells]
    change(mine)
    assert [cell.key for cell in plan.cells] == before


def test_a_comparison_keeps_what_the_code_was(make_graph, name, tmp_path):
    make_graph(num_nodes=40).save(tmp_path / "g.npz")
    for done in (0, 1):
        graphfm.compare(
            str(tmp_path / "g.npz"), [f"{name}:smoothed"], seeds=1, budget_epochs=1, hidden=8,
            device="cpu", out=tmp_path / "out",
        )  # fmt: skip
        lines = (tmp_path / "out" / "cells.jsonl").read_text().splitlines()
        assert len(lines) == 1, f"trained again at start {done}"
    digests = Run.make(method=f"{name}:smoothed").digests()
    assert json.loads(lines[0])["digests"] == digests


def test_a_run_that_goes_on_with_changed_code_says_so(make_graph, mine, name, tmp_path, caplog):
    graph, out = make_graph(), tmp_path / "run"
    graphfm.train(graph, method=mine.smoothed, backbone=mine.Scaled, out=out, **SHORT)
    own = {"method": mine.smoothed, "backbone": mine.Scaled}
    graphfm.resume(out, graph=graph, **own)
    assert "has changed" not in caplog.text
    change(mine)
    graphfm.resume(out, graph=graph, method=mine.smoothed, backbone=mine.Scaled)
    for own_name in (f"{name}:smoothed", f"{name}:Scaled"):
        assert f"{own_name} has changed since the run began" in caplog.text


def test_our_own_code_has_no_digest():
    assert Run.make(method="gas", backbone="gcn").digests() == {}
