"""Folders that were written before there was one engine for all experiments."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from graphfm.experiments.cell import Cell
from graphfm.experiments.compare import Plan, compare
from graphfm.experiments.compare.sweep import own_settings
from graphfm.experiments.outcome import FINISHED, Outcome
from graphfm.experiments.reproduce import ReproductionPlan, reproduce
from graphfm.experiments.reproduce.report import paper_table
from graphfm.recipes import recipes
from graphfm.runs.run import Run
from graphfm.training.callbacks import Score

OLD = Path(__file__).parent / "old_folders"
SCORE = Score(
    val=0.6, test=0.5, best_epoch=1, epochs=2, seconds_per_epoch=0.1, seconds_to_best=0.2,
    prepare_seconds=0.1, nodes_per_step=10.0, edges_per_step=20.0, peak_bytes=2**28,
)  # fmt: skip


class Runner:
    def __init__(self) -> None:
        self.ran = list[str]()

    def __call__(self, cell: Cell, fingerprint: str | None, scratch: Path) -> Outcome:
        self.ran.append(cell.label)
        return Outcome(status=FINISHED, score=SCORE)


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A copy of an old folder; this machine stands in for the one that wrote it."""

    def copy(name: str) -> Path:
        path = shutil.copytree(OLD / name, tmp_path / name)
        settings = json.loads((path / "comparison.json").read_text())["settings"]
        kind = name.partition("_")[0]
        module = f"graphfm.experiments.{kind}.{'plan' if kind == 'compare' else 'run'}"
        monkeypatch.setattr(f"{module}.versions", lambda: settings["versions"])
        monkeypatch.setattr(f"{module}.machine", lambda device: settings["machine"])
        return path

    return copy


def compare_plan(seeds: int) -> Plan:
    return Plan.make(
        dataset="synthetic:small:0.02", device="cpu", backbone="pna", hidden=8, budget_epochs=3,
        methods="full,graphsage,graphfm-delta", seeds=seeds,
        lr=0.01, schedule="constant", patience=10, parts=24, parts_per_batch=4,  # its defaults
        own=own_settings(["graphsage.lr=0.003"]),
    )  # fmt: skip


def test_an_old_comparison_is_read(old):
    path, runner = old("compare"), Runner()
    before = (path / "cells.jsonl").read_bytes()
    full, sage, delta = compare(compare_plan(2), path, run_cell=runner)
    assert runner.ran == []
    assert [round(test, 4) for test in (*full.tests, *sage.tests)] == [0.06, 0.14, 0.06, 0.08]
    assert delta.note.startswith("not defined: graphfm-delta adds up differences")
    assert (path / "cells.jsonl").read_bytes() == before


def test_an_old_comparison_is_continued(old):
    path, runner = old("compare"), Runner()
    rows = compare(compare_plan(3), path, run_cell=runner)
    assert runner.ran == ["full, seed 2", "graphsage, seed 2"]
    assert [len(row.scores) for row in rows] == [3, 3, 0]


def reproduce_plan(seeds: int) -> ReproductionPlan:
    return ReproductionPlan.make(
        "table4", substitute="synthetic", scale=0.002, datasets=["flickr"], epochs=2, seeds=seeds,
        device="cpu",
    )  # fmt: skip


def test_an_old_reproduction_is_read_and_continued(old, monkeypatch):
    """As long as its recipes are the same: here they are those of its own time."""
    path, runner = old("reproduce"), Runner()
    lines = (path / "cells.jsonl").read_text().splitlines()
    cells = [json.loads(line) for line in lines]
    runs = {cell["cell"].split(",")[0]: Run.from_json(cell["run"]) for cell in cells}
    today = recipes()
    then = {
        name: replace(today[name], run=replace(run, dataset="flickr")) for name, run in runs.items()
    }
    monkeypatch.setattr("graphfm.experiments.reproduce.plan.recipes", lambda: then)
    outcomes = reproduce(reproduce_plan(1), path, run_cell=runner)
    assert runner.ran == []
    ours = [record["ours"] for record in paper_table(reproduce_plan(1), outcomes).records]
    assert ours == ["6.1175", "8.8941", "5.8706", "11.5448", "4.0332", "6.2919"]
    reproduce(reproduce_plan(2), path, run_cell=runner)
    assert len(runner.ran) == 3
    assert all(label.endswith("seed 1") for label in runner.ran)


def test_recipes_that_have_changed_run_again_and_old_results_stay(old):
    path, runner = old("reproduce"), Runner()
    before = (path / "cells.jsonl").read_text()
    reproduce(reproduce_plan(1), path, run_cell=runner)
    assert len(runner.ran) == 3
    assert (path / "cells.jsonl").read_text().startswith(before)


def test_cells_of_an_old_comparison_are_known_by_what_their_lists_meant(old):
    """It has graphsage with fan-outs 3,1 and ladies with 20,40 nodes, both input layer first."""

    def plan(fanout: str, nodes: str) -> Plan:
        own = own_settings([f"graphsage.fanout={fanout}", f"ladies.nodes_per_layer={nodes}"])
        return Plan.make(
            dataset="synthetic:small:0.02", device="cpu", hidden=8, budget_epochs=2, seeds=1,
            methods="graphsage,ladies", own=own,
        )  # fmt: skip

    path, runner = old("compare_lists"), Runner()
    sage, ladies = compare(plan("1,3", "40,20"), path, run_cell=runner)
    assert runner.ran == []
    assert [round(row.tests[0], 4) for row in (sage, ladies)] == [0.18, 0.2]
    compare(plan("3,1", "20,40"), path, run_cell=runner)
    assert runner.ran == ["graphsage, seed 0", "ladies, seed 0"]
