"""What is run, what is not run again, and what is left behind."""

import csv
import json

import pytest

from graphfm import Graph, InputError
from graphfm.experiments.compare import Observer, Plan, Sweep, compare
from graphfm.experiments.compare.run import default_path
from graphfm.experiments.outcome import BROKEN, FAILED, FINISHED, UNDEFINED
from graphfm.methods import METHODS

FILES = {
    "comparison.json", "cells.jsonl", "table.md", "table.csv", "table.tex", "comparison.png",
}  # fmt: skip
FULL = METHODS["full"].trains_with
ALL = ["full, seed 0", "graphsage, seed 0", "full, seed 1", "graphsage, seed 1"]


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch) -> None:
    """They take most of the time, and have tests of their own."""
    for name in ("draw_comparison", "draw_sweep"):
        monkeypatch.setattr(f"graphfm.experiments.compare.picture.{name}", lambda *a: a[-1].touch())


class Notes(Observer):
    def __init__(self) -> None:
        self.begun, self.started, self.ended = None, [], []

    def on_begin(self, progress):
        self.progress, self.begun = progress, (progress.num_done, progress.num_cells)

    def on_start(self, cell):
        assert self.progress.running is cell
        self.started.append((cell.label, self.progress.number))

    def on_end(self, cell, outcome):
        assert self.progress.running is None
        self.ended.append((cell.label, outcome.status, self.progress.num_done))


def names(path) -> set[str]:
    return {item.name for item in path.iterdir()}


def test_a_new_comparison_runs_every_cell_and_reports(tmp_path, make_plan, runner):
    notes = Notes()
    rows = compare(make_plan(), tmp_path, run_cell=runner, observer=notes)
    assert runner.ran == ALL
    assert [(row.method, row.tests) for row in rows] == [
        ("full", [0.5, 0.6]),
        ("graphsage", [0.5, 0.6]),
    ]
    assert names(tmp_path) == FILES
    assert notes.begun == (0, 4)
    assert notes.started == [(label, number) for number, label in enumerate(ALL, start=1)]
    assert [done for *_, done in notes.ended] == [1, 2, 3, 4]


def test_a_finished_cell_is_never_run_twice(tmp_path, make_plan, runner):
    first = compare(make_plan(), tmp_path, run_cell=runner)
    lines, notes = (tmp_path / "cells.jsonl").read_bytes(), Notes()
    runner.ran.clear()
    assert compare(make_plan(), tmp_path, run_cell=runner, observer=notes) == first
    assert (runner.ran, notes.begun) == ([], (4, 4))
    assert (tmp_path / "cells.jsonl").read_bytes() == lines


def test_interrupted_it_goes_on_with_the_cell_that_was_lost(tmp_path, make_plan, runner):
    runner.ends = {ALL[2]: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        compare(make_plan(), tmp_path, run_cell=runner)
    runner.ends, runner.ran, notes = {}, [], Notes()
    compare(make_plan(), tmp_path, run_cell=runner, observer=notes)
    assert (runner.ran, notes.begun) == (ALL[2:], (2, 4))
    assert notes.started[0] == (ALL[2], 3)


def test_more_seeds_and_methods_run_only_what_is_missing(tmp_path, make_plan, runner):
    compare(make_plan(), tmp_path, run_cell=runner)
    runner.ran.clear()
    rows = compare(make_plan("full,gas,graphsage", 3), tmp_path, run_cell=runner)
    assert runner.ran == [
        "gas, seed 0", "gas, seed 1", "full, seed 2", "gas, seed 2", "graphsage, seed 2",
    ]  # fmt: skip
    assert [len(row.scores) for row in rows] == [3, 3, 3]


def test_fewer_are_a_smaller_table_and_nothing_is_forgotten(tmp_path, make_plan, runner):
    compare(make_plan(), tmp_path, run_cell=runner)
    (row,) = compare(make_plan("graphsage", 1), tmp_path, run_cell=runner)
    assert (row.method, row.tests) == ("graphsage", [0.5])
    compare(make_plan(), tmp_path, run_cell=runner)
    assert runner.ran == ALL


def test_more_values_of_a_sweep_run_only_what_is_missing(tmp_path, make_plan, runner):
    compare(make_plan(seeds=1, sweep=Sweep("fanout", (1, 4))), tmp_path, run_cell=runner)
    assert runner.ran == [
        "full, seed 0", "graphsage, fanout 1, seed 0", "graphsage, fanout 4, seed 0",
    ]  # fmt: skip
    assert names(tmp_path) == FILES - {"comparison.png"} | {"sweep.png"}
    runner.ran.clear()
    compare(make_plan(seeds=1, sweep=Sweep("fanout", (1, 2, 4))), tmp_path, run_cell=runner)
    assert runner.ran == ["graphsage, fanout 2, seed 0"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"budget_epochs": 5}, f"training epochs {FULL['epochs']}, but this command has 5"),
        ({"lr": 0.02}, f"training lr {FULL['lr']}, but this command has 0.02"),
        ({"hidden": 8}, "network hidden 256, but this command has 8"),
        ({"backbone": "gcn"}, "backbone sage, but this command has gcn"),
        ({"sweep": Sweep("fanout", (1,))}, "without sweep, but this command has fanout"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(tmp_path, make_plan, runner, options, named):
    compare(make_plan(), tmp_path, run_cell=runner)
    with pytest.raises(InputError, match=named):
        compare(make_plan(**options), tmp_path, run_cell=runner)
    assert runner.ran == ALL


def test_the_same_setting_may_be_given_or_left_to_its_default(tmp_path, make_plan, runner):
    compare(make_plan(), tmp_path, run_cell=runner)
    given = {"hidden": 256, "weight_decay": 0.0, "schedule": "cosine", "patience": 50}
    compare(make_plan(**given), tmp_path, run_cell=runner)
    assert runner.ran == ALL


def test_a_graph_that_changed_is_refused(tmp_path, make_graph, runner):
    for seed in (0, 1):
        make_graph(seed=seed).save(tmp_path / f"{seed}.npz")
    plans = [Plan.make(dataset=str(tmp_path / f"{s}.npz"), device="cpu") for s in (0, 0, 1)]
    compare(plans[0], tmp_path / "c", run_cell=runner)
    compare(plans[1], tmp_path / "c", run_cell=runner)
    with pytest.raises(InputError, match="results of another graph"):
        compare(plans[2], tmp_path / "c", run_cell=runner)


def test_a_failed_cell_does_not_end_the_table_and_is_tried_again(tmp_path, make_plan, runner):
    runner.ends = {ALL[1]: FAILED}
    rows = compare(make_plan(), tmp_path, run_cell=runner)
    assert runner.ran == ALL
    assert [(row.num_failed, len(row.scores)) for row in rows] == [(0, 2), (1, 1)]
    assert rows[1].note == "1 of 2 failed: graphsage is no good; try another"
    runner.ends, runner.ran = {}, []
    rows = compare(make_plan(), tmp_path, run_cell=runner)
    assert runner.ran == [ALL[1]]
    assert [(row.num_failed, row.note) for row in rows] == [(0, ""), (0, "")]


def test_a_method_that_is_not_defined_is_tried_once_and_for_all(tmp_path, make_plan, runner):
    runner.ends = {ALL[1]: UNDEFINED}
    rows = compare(make_plan(), tmp_path, run_cell=runner)
    assert runner.ran == [ALL[0], ALL[1], ALL[2]]
    assert rows[1].note == "not defined: graphsage is no good; try another"
    assert rows[1].num_failed == 0
    notes = Notes()
    compare(make_plan(seeds=3), tmp_path, run_cell=runner, observer=notes)
    assert runner.ran[3:] == ["full, seed 2"]
    assert notes.begun == (5, 6)


def test_where_nothing_worked_there_are_tables_and_no_picture(tmp_path, make_plan, runner):
    runner.ends = dict.fromkeys(ALL, FAILED)
    compare(make_plan(), tmp_path, run_cell=runner)
    assert names(tmp_path) == FILES - {"comparison.png"}


def test_the_files_hold_the_rows(tmp_path, make_plan, runner):
    compare(make_plan(), tmp_path, run_cell=runner)
    lines = [json.loads(line) for line in (tmp_path / "cells.jsonl").read_text().splitlines()]
    assert [(line["cell"], line["status"]) for line in lines] == [(x, FINISHED) for x in ALL]
    assert lines[3]["run"]["training"]["seed"] == 1
    record = json.loads((tmp_path / "comparison.json").read_text())
    assert record["settings"]["graph"]["nodes"] == 200
    assert record["settings"]["versions"].keys() == {"graphfm", "torch", "numpy", "python"}
    assert record["asked"]["methods"] == ["full", "graphsage"]
    with (tmp_path / "table.csv").open(newline="") as stream:
        full, graphsage = csv.DictReader(stream)
    assert (full["method"], graphsage["method"]) == ("full", "graphsage")
    assert float(full["test"]) == pytest.approx(0.55)
    assert float(full["test_std"]) == pytest.approx(0.1 / 2**0.5)
    assert "| graphsage | 0.5500 ± 0.0707 |" in (tmp_path / "table.md").read_text()


def test_a_graph_that_cannot_be_trained_on_leaves_nothing(tmp_path, runner):
    Graph.from_edges([[0], [1]], [[0.0], [1.0]], [0, 1]).save(tmp_path / "g.npz")
    plan = Plan.make(dataset=str(tmp_path / "g.npz"), device="cpu")
    with pytest.raises(InputError, match="the graph has no train_mask"):
        compare(plan, tmp_path / "c", run_cell=runner)
    assert names(tmp_path) == {"g.npz"}


def test_a_sweep_has_a_folder_of_its_own(make_plan):
    assert str(default_path(make_plan())) == "runs/compare-synthetic-small-0.02-sage"
    swept = make_plan(sweep=Sweep("fanout", (1,)))
    assert str(default_path(swept)) == "runs/compare-synthetic-small-0.02-sage-fanout"


def test_a_method_that_is_not_defined_does_not_keep_the_others_from_running(
    tmp_path, make_plan, runner
):
    plan = make_plan("full,graphfm-delta", 1, backbone="pna")
    compare(plan, tmp_path, run_cell=runner)
    assert runner.ran == ["full, seed 0", "graphfm-delta, seed 0"]


def test_the_same_graph_under_another_name_is_the_same_comparison(
    tmp_path, make_graph, runner, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    make_graph().save(tmp_path / "a.npz")
    for name in ("a.npz", "./a.npz"):
        compare(Plan.make(dataset=name, device="cpu", methods="full"), "c", run_cell=runner)
    assert runner.ran == ["full, seed 0", "full, seed 1", "full, seed 2"]


def test_a_run_that_cannot_be_built_is_an_error_of_the_whole(tmp_path, make_plan, runner):
    runner.ends = {ALL[1]: BROKEN}
    with pytest.raises(InputError, match="graphsage, seed 0 cannot be run: graphsage is no good"):
        compare(make_plan(), tmp_path, run_cell=runner)
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 1  # it is not kept
