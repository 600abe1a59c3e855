"""A whole search: what is run, what is not run again, and what is left behind."""

import csv
import json
import time

import pytest

import graphfm
from graphfm import InputError
from graphfm.experiments.cell import SCORE, VALIDATION
from graphfm.experiments.outcome import FAILED, UNDEFINED, Outcome
from graphfm.experiments.tune import tune
from graphfm.experiments.tune.plan import SEED
from tests.own_module import write_module
from tests.unit.experiments.tune.training import draw_nothing

FILES = {
    "tuning.json", "trials.journal", "trials.csv", "trials.md", "trials.jsonl", "trials.png",
    "table.md", "table.csv", "table.tex", "comparison.png", "curves.png", "final", "best",
    ".workers",
}  # fmt: skip
TRIALS = ["full, trial 1", "graphsage, trial 1", "full, trial 2", "graphsage, trial 2"]
FINAL = ["full, seed 0", "graphsage, seed 0", "full, seed 1", "graphsage, seed 1"]


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch) -> None:
    draw_nothing(monkeypatch)


def lines(path) -> list[dict]:
    return [json.loads(line) for line in (path / "trials.jsonl").read_text().splitlines()]


def test_a_search_tries_the_methods_in_turns_and_trains_the_best_of_each(tmp_path, make_plan, here):
    rows = tune(make_plan(), tmp_path, train=here)
    assert here.labels == TRIALS + FINAL
    assert {item.name for item in tmp_path.iterdir()} == FILES
    records = lines(tmp_path)
    for row in rows:
        own = [record for record in records if record["method"] == row.method]
        best = max((r for r in own if r["state"] == "complete"), key=lambda r: r["val"])
        assert (row.chosen, row.trial_val) == (best["settings"], best["val"])
        final = [c.run for c in here.cells if c.label.startswith(f"{row.method}, seed")]
        for name, value in row.chosen.items():
            assert {getattr(run.training, name, value) for run in final} == {value}
        assert (len(row.scores), row.trials) == (2, 2)
    assert [row.is_reference for row in rows].count(True) == 1  # the best on validation
    assert all((row.difference is None) == row.is_reference for row in rows)


def test_no_trial_sees_the_test_nodes_or_a_final_seed(tmp_path, make_plan, here):
    tune(make_plan(), tmp_path, train=here)
    trials, final = here.cells[:4], here.cells[4:]
    assert {(cell.measure, cell.run.training.seed) for cell in trials} == {(VALIDATION, SEED)}
    assert {(cell.measure, cell.run.training.seed) for cell in final} == {(SCORE, 0), (SCORE, 1)}
    assert "test" not in (tmp_path / "trials.journal").read_text()
    assert all("test" not in record for record in lines(tmp_path))


def test_the_second_time_nothing_is_run(tmp_path, make_plan, here):
    first = tune(make_plan(), tmp_path, train=here)
    here.cells.clear()
    assert tune(make_plan(), tmp_path, train=here) == first
    assert here.labels == []


def test_more_trials_methods_and_seeds_run_what_is_missing(tmp_path, make_plan, here):
    tune(make_plan("full"), tmp_path, train=here)
    here.cells.clear()
    tune(make_plan("full,graphsage", trials=3, seeds=3), tmp_path, train=here)
    labels = here.labels
    trials = ["full, trial 3", *(f"graphsage, trial {n}" for n in (1, 2, 3))]
    assert sorted(label for label in labels if "trial" in label) == trials
    assert {"full, seed 2", "graphsage, seed 2"} <= set(labels)


def test_the_best_run_of_each_method_is_a_run_like_any_other(tmp_path, make_plan, here):
    rows = tune(make_plan(), tmp_path, train=here)
    for row in rows:
        path = tmp_path / "best" / row.method
        result = graphfm.resume(path)
        assert (result.run.training.seed, result.score.test) == (0, row.tests[0])
        assert graphfm.load_model(path) is not None
        assert json.loads((path / "config.json").read_text())["run"]["method"] == row.method
    (tmp_path / "best" / "full" / "result.json").unlink()
    here.cells.clear()
    tune(make_plan(), tmp_path, train=here)
    assert here.labels == ["full, seed 0"]
    assert (tmp_path / "best" / "full" / "result.json").exists()


def test_interrupted_it_goes_on_with_what_was_lost(tmp_path, make_plan, here):
    here.ends = {TRIALS[2]: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        tune(make_plan(), tmp_path, train=here)
    assert len(lines(tmp_path)) == 2
    lost = here.cells[-1].run.training
    here.ends, here.cells = {}, []
    rows = tune(make_plan(), tmp_path, train=here)
    trials = [cell for cell in here.cells if "trial" in cell.label]
    assert [cell.label for cell in trials] == ["full, trial 3", "graphsage, trial 2"]
    assert trials[0].run.training == lost
    assert [row.trials for row in rows] == [2, 2]


def test_a_training_that_fails_is_a_trial_and_not_the_end(tmp_path, make_plan, here):
    failed = Outcome(status=FAILED, error="the loss is nan")
    here.ends = dict.fromkeys(("full, trial 1", "graphsage, trial 1", "graphsage, trial 2"), failed)
    full, sage = tune(make_plan(), tmp_path, train=here)
    assert (len(full.scores), len(sage.scores)) == (2, 0)
    assert sage.note == "none of 2 trials finished: the loss is nan"
    assert [record["state"] for record in lines(tmp_path)].count("failed") == 3
    assert "chosen on validation, by 4 trainings, 3 failed" in (tmp_path / "table.md").read_text()


def test_a_method_that_is_not_defined_is_tried_once(tmp_path, make_plan, here):
    here.ends = {"graphsage, trial 1": Outcome(status=UNDEFINED, error="not on this graph")}
    full, sage = tune(make_plan(trials=3), tmp_path, train=here)
    assert (full.trials, sage.trials) == (3, 1)
    assert sage.note == "not defined: not on this graph"


def test_where_nothing_works_there_is_a_table_and_no_final_training(tmp_path, make_plan, here):
    here.ends = {"full, trial 1": Outcome(status=UNDEFINED, error="not on this graph")}
    (row,) = tune(make_plan("full"), tmp_path, train=here)
    assert (row.scores, here.labels) == ((), ["full, trial 1"])
    assert "not defined: not on this graph" in (tmp_path / "table.md").read_text()


def test_however_little_the_time_every_method_is_tried_and_trained(tmp_path, make_plan, here):
    here.pause = 0.01
    started = time.monotonic()
    rows = tune(make_plan(minutes=1e-4), tmp_path, train=here)
    assert time.monotonic() - started < 20
    assert here.labels == TRIALS[:2] + FINAL
    assert [row.trials for row in rows] == [1, 1]
    table = (tmp_path / "table.tex").read_text()
    assert "there was time for the defaults alone of full, graphsage; give more minutes" in table


def test_minutes_are_the_time_of_everything(tmp_path, make_plan, here):
    here.pause = 0.05  # 0.15 s a training
    started = time.monotonic()
    (row,) = tune(make_plan("full", minutes=4 / 60), tmp_path, train=here)
    assert time.monotonic() - started < 4 + 4
    assert row.trials >= 2


def test_a_fixed_setting_is_that_of_every_training(tmp_path, make_plan, here):
    plan = make_plan(lr=0.003, own={"graphsage": {"dropout": 0.1, "fanout": (2,)}})
    rows = tune(plan, tmp_path, train=here)
    assert {cell.run.training.lr for cell in here.cells} == {0.003}
    sage = [cell.run for cell in here.cells if cell.run.method == "graphsage"]
    assert {run.backbone_settings["dropout"] for run in sage} == {0.1}
    assert {run.method_settings["fanout"] for run in sage} == {(2,)}
    assert "lr" not in rows[0].chosen
    assert {"dropout", "fanout"}.isdisjoint(rows[1].chosen)


def test_other_settings_in_the_same_folder_are_refused(tmp_path, make_plan, here):
    tune(make_plan(), tmp_path, train=here)
    with pytest.raises(InputError, match="network hidden 8, but this command has 4"):
        tune(make_plan(hidden=4), tmp_path, train=here)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="is not empty and holds no results of this command"):
        tune(make_plan(), tmp_path / "other", train=here)


def test_a_method_of_ones_own_is_searched_too(tmp_path, make_plan, here, monkeypatch):
    write_module(tmp_path, "tuned_module")
    monkeypatch.syspath_prepend(tmp_path)
    (row,) = tune(make_plan("tuned_module:smoothed"), tmp_path / "out", train=here)
    assert row.chosen.keys() == {"lr", "weight_decay", "schedule", "dropout"}
    assert (tmp_path / "out" / "best" / "tuned_module-smoothed" / "config.json").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"trials": None}, "there is no budget; give minutes"),
        ({"trials": 0}, "trials is 0; expected 1 or more"),
        ({"minutes": -1}, "minutes is -1; expected a number above 0"),
        ({"jobs": 0}, "jobs is 0; expected 1 or more"),
        ({"seeds": 0}, "seeds is 0; expected 1 to 1000"),
        ({"colour": 1}, "colour is not a setting of"),
    ],
)
def test_what_makes_no_sense_is_refused(make_plan, options, said):
    with pytest.raises(InputError, match=said):
        make_plan(**options)


def test_the_files_hold_every_trial(tmp_path, make_plan, here):
    tune(make_plan(jobs=2), tmp_path, train=here)
    with (tmp_path / "trials.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["method"], row["trial"]) for row in rows] == [
        ("full", "1"), ("full", "2"), ("graphsage", "1"), ("graphsage", "2"),
    ]  # fmt: skip
    assert {"lr", "dropout", "batch_size", "val", "seconds"} <= rows[0].keys()
    assert [row["is_default"] for row in rows] == ["True", "False"] * 2
    assert "(defaults)" in (tmp_path / "trials.md").read_text()
    assert all(len(record["curve"]) >= 1 for record in lines(tmp_path))
