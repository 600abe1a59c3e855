"""Several swept options, settings that only some methods take, and what else a folder holds."""

import json

import pytest

from graphfm import InputError
from graphfm.experiments.compare import Observer, Sweep, compare
from graphfm.experiments.compare.run import default_path
from graphfm.experiments.compare.sweep import own_settings
from graphfm.experiments.outcome import FINISHED, Outcome
from graphfm.methods import METHODS

LR, FANOUT = Sweep("lr", (0.1, 0.2)), Sweep("fanout", (1, 2))


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch) -> None:
    for name in ("picture.draw_comparison", "picture.draw_sweep", "curve_picture.draw_curves"):
        monkeypatch.setattr(f"graphfm.experiments.compare.{name}", lambda *a: a[-1].touch())


class Said(Observer):
    def __init__(self) -> None:
        self.lines = list[str]()

    def on_message(self, line):
        self.lines.append(line)


def test_every_combination_that_a_method_takes_is_a_row(make_plan):
    plan = make_plan(seeds=1, sweep=[LR, FANOUT])
    assert [(entry.method, *entry.values.values()) for entry in plan.entries] == [
        ("full", 0.1, None), ("full", 0.2, None), ("graphsage", 0.1, 1), ("graphsage", 0.1, 2),
        ("graphsage", 0.2, 1), ("graphsage", 0.2, 2),
    ]  # fmt: skip
    assert plan.cells[2].label == "graphsage, lr 0.1, fanout 1, seed 0"
    run = plan.cells[3].run
    assert (run.training.lr, run.method_settings["fanout"]) == (0.1, (2,))
    assert plan.asked()["sweeps"] == {"lr": [0.1, 0.2], "fanout": [1, 2]}
    assert [row.to_json()["values"] for row in plan.rows({})][:3] == [
        {"lr": 0.1, "fanout": None}, {"lr": 0.2, "fanout": None}, {"lr": 0.1, "fanout": 1},
    ]  # fmt: skip
    assert {row.to_json()["value"] for row in plan.rows({})} == {None}
    assert str(default_path(plan)).endswith("-sage-lr-fanout")


def test_one_sweep_in_a_list_is_one_sweep(make_plan):
    alone, listed = (make_plan(seeds=1, sweep=sweep) for sweep in (FANOUT, [FANOUT]))
    assert alone == listed
    assert alone.asked()["values"] == [1, 2]
    assert [row.to_json()["value"] for row in alone.rows({})] == [None, 1, 2]
    assert [row.to_json()["values"] for row in alone.rows({})][1] == {"fanout": 1}


def test_a_combination_that_is_no_good_is_a_row_that_says_so(make_plan, monkeypatch):
    def picky(*, fanout: tuple[int, ...] = (5,), batch_size: int = 1):
        if (fanout, batch_size) == ((1,), 8):
            raise InputError("fanout 1 and batch_size 8 do not go together")
        return METHODS["graphsage"](fanout=fanout, batch_size=batch_size)

    monkeypatch.setattr("graphfm.runs.named.METHODS", {**METHODS, "gas": picky})
    plan = make_plan("gas", sweep=[FANOUT, Sweep("batch_size", (4, 8))])
    assert [entry.refusal is None for entry in plan.entries] == [True, False, True, True]


def test_a_grid_is_continued_with_its_sweeps_in_any_order(tmp_path, make_plan, runner):
    compare(make_plan(seeds=1, sweep=[LR, FANOUT]), tmp_path, run_cell=runner)
    assert len(runner.ran) == 6
    runner.ran.clear()
    more = [Sweep("fanout", (1, 2, 3)), LR]
    compare(make_plan(seeds=1, sweep=more), tmp_path, run_cell=runner)
    assert runner.ran == [
        "graphsage, fanout 3, lr 0.1, seed 0",
        "graphsage, fanout 3, lr 0.2, seed 0",
    ]
    with pytest.raises(InputError, match="with sweep fanout,lr, but this command has lr"):
        compare(make_plan(seeds=1, sweep=LR), tmp_path, run_cell=runner)


def test_a_folder_of_one_sweep_is_as_earlier_versions_wrote_it(tmp_path, make_plan, runner):
    compare(make_plan(seeds=1, sweep=FANOUT), tmp_path, run_cell=runner)
    record = json.loads((tmp_path / "comparison.json").read_text())
    assert (record["settings"]["sweep"], record["asked"]["values"]) == ("fanout", [1, 2])
    del record["asked"]["sweeps"]
    (tmp_path / "comparison.json").write_text(json.dumps(record))
    runner.ran.clear()
    compare(make_plan(seeds=1, sweep=FANOUT), tmp_path, run_cell=runner)
    assert runner.ran == []


def test_a_setting_of_histories_needs_one_method_that_keeps_them(make_plan):
    for methods in ("gas", "full,gas"):
        plan = make_plan(methods, 1, history="bf16")
        assert plan.entries[-1].cells[0].run.training.history == "bf16"
        assert plan.shared.training.history == "bf16"
    assert plan.entries[0].cells[0].run.training.history == "fp32"
    assert make_plan(history="fp32").entries  # the default is no mistake


def test_a_table_of_other_settings_says_that_more_is_kept(tmp_path, make_plan, runner):
    plans = [make_plan(own=own_settings([f"graphsage.lr={lr}"])) for lr in (0.1, 0.2)]
    said = [Said() for _ in plans]
    for plan, one in zip(plans, said, strict=True):
        compare(plan, tmp_path, run_cell=runner, observer=one)
    assert not any("also keeps" in line for line in said[0].lines)
    assert said[1].lines[-1] == (
        f"{tmp_path} also keeps 2 finished trainings with other methods, seeds, values or "
        "settings; the tables and pictures are of this command alone, and all trainings stay in "
        "cells.jsonl"
    )
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 6
    assert "lr 0.2" in (tmp_path / "table.md").read_text()


def test_curves_are_kept_with_their_training(tmp_path, make_plan, make_score):
    curve = {"epoch": [1], "loss": [2.5], "val": [0.5], "lr": [0.01], "seconds": [0.25]}

    def with_curve(cell, fingerprint, scratch) -> Outcome:
        return Outcome(status=FINISHED, score=make_score(), curve=curve)

    compare(make_plan(), tmp_path, run_cell=with_curve)
    lines = [json.loads(line) for line in (tmp_path / "cells.jsonl").read_text().splitlines()]
    assert [line["curve"] for line in lines] == [curve] * 4
    assert (tmp_path / "curves.png").exists()
    (tmp_path / "curves.png").unlink()
    rows = compare(make_plan(), tmp_path, run_cell=None)  # which runs nothing
    assert [row.curves for row in rows] == [(curve, curve)] * 2
    assert (tmp_path / "curves.png").exists()


def test_the_columns_of_the_files_can_be_chosen(tmp_path, make_plan, runner):
    compare(make_plan(), tmp_path, run_cell=runner, columns="validation,test")
    assert "| method | validation | test | settings | note |" in (tmp_path / "table.md").read_text()
    assert "method & validation & test \\\\" in (tmp_path / "table.tex").read_text()
    assert "seconds_to_best" in (tmp_path / "table.csv").read_text()
    with pytest.raises(InputError, match="unknown column 'x'"):
        compare(make_plan(), tmp_path / "new", run_cell=runner, columns="x")
    assert not (tmp_path / "new").exists()
