"""graphfm tune: the table, its JSON, what is said on the way, and what is refused."""

import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import graphfm as package
from graphfm.cli import main
from graphfm.experiments.outcome import FAILED, UNDEFINED, Outcome
from graphfm.methods import METHODS
from tests.own_module import write_module
from tests.unit.cli.commands import graphfm, refused
from tests.unit.experiments.tune.training import Here, draw_nothing

SMALL = ("--dataset", "synthetic:small:0.02", "--device", "cpu", "--hidden", "8", "--jobs", "1")
FEW = (*SMALL, "--methods", "full,graphsage", "--trials", "2", "--seeds", "2")
SHORT = ("--budget-epochs", "3")
OUT = "runs/tune-synthetic-small-0.02-sage"

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(autouse=True)
def trained(monkeypatch) -> Here:
    """No processes, and no pictures."""
    draw_nothing(monkeypatch)
    found = Here()
    monkeypatch.setattr("graphfm.experiments.workers.run_in_child", found)
    return found


def tune(*arguments):
    return graphfm("tune", *arguments)


def test_the_table_is_on_stdout_and_all_else_on_stderr(here):
    ended = tune(*FEW, *SHORT)
    assert ended.code == 0, ended.err
    caption, header, *rows = ended.out.splitlines()
    assert re.search(r"2 seeds, on cpu, 1 training at a time; the settings were chosen", caption)
    assert re.search(r"chosen on validation, by 4 trainings", caption)
    assert header.split()[:3] == ["method", "test", "validation"]
    assert [row.split()[0] for row in rows[:2]] == ["full", "graphsage"]
    assert re.search(r"  full: lr [\d.e-]+, weight_decay [\d.e-]+, schedule \w+", ended.out)
    assert re.search(r"[+-]0\.\d{4} \[[+-]0\.\d{4}, [+-]0\.\d{4}\]", ended.out)  # the difference
    lines = ended.err.splitlines()
    assert re.match(r"1 of 4 trials: full, trial 1: validation 0\.\d+ at epoch \d of 3", lines[1])
    assert any(line.startswith("the search is over after 4 trainings") for line in lines)
    assert any(re.match(r"4 of 4: graphsage, seed 1: test 0\.\d+", line) for line in lines)
    assert lines[-1].endswith(f"the best run of each method are in {OUT}")
    assert (here / OUT / "best" / "graphsage" / "result.json").exists()


def test_json_is_one_object_with_rows():
    ended = tune(*FEW, *SHORT, "--json")
    assert ended.code == 0, ended.err
    record = ended.json
    assert (record["dataset"], record["trials"], record["num_trials"]) == (
        "synthetic:small:0.02", 2, 4,
    )  # fmt: skip
    assert "chosen on validation, by 4 trainings" in record["caption"]
    for row in record["rows"]:
        assert {"method", "settings", "val", "test", "test_std", "std"} <= row.keys()
        assert row["std"] == row["test_std"] > 0 or row["test_std"] == 0
        assert row["chosen"].keys() >= {"lr", "dropout", "weight_decay", "schedule"}
        assert (row["seeds"], row["trials"], len(row["tests"])) == (2, 2, 2)
        for name in row["chosen"]:  # also those that are the defaults, and each once
            assert len(re.findall(rf"\b{name} ", row["settings"])) == 1
    assert [row["difference"] is None for row in record["rows"]].count(True) == 1


def test_minutes_may_shorten_the_trainings_and_the_json_says_so(trained):
    trained.pause, own = 0.05, METHODS["full"].trains_with["epochs"]  # more than 10 s
    ended = tune(*SMALL, "--methods", "full", "--minutes", "0.04", "--seeds", "1", "--json")
    assert ended.code == 0, ended.err
    factor, caption = ended.json["epochs_factor"], ended.json["caption"]
    assert factor < 1
    assert f"; epochs are {factor:g} times each method's own" in caption
    assert "--budget-epochs sets them; the settings were chosen" in caption
    assert f"epochs are {factor:g} times each method's own" in " ".join(ended.err.split())
    assert {c.run.training.epochs for c in trained.cells[1:]} == {max(5, round(own * factor))}


def test_the_best_run_can_be_evaluated_and_used_to_predict(here):
    row = tune(*SMALL, *SHORT, "--methods", "full", "--trials", "1", "--json").json["rows"][0]
    best = here / OUT / "best" / "full"
    assert graphfm("evaluate", best, "--json").json["test"] == pytest.approx(row["tests"][0])
    data = ("--dataset", "synthetic:small:0.02")
    assert graphfm("predict", best, *data, "--out", "p.csv").code == 0
    assert graphfm("train", "--resume", best, "--json").json["test"] == row["tests"][0]


def test_the_second_time_nothing_is_run_and_that_is_said(trained):
    first = tune(*FEW, *SHORT)
    trained.cells.clear()
    second = tune(*FEW, *SHORT)
    assert (second.code, second.out, trained.labels) == (first.code, first.out, [])
    assert "4 of 4 trainings are done already and are not run again" in second.err


def test_an_option_is_fixed_for_all_or_for_one(trained):
    ended = tune(*FEW, *SHORT, "--lr", "0.003", "--set", "graphsage.batch-size=64", "--json")
    full, sage = ended.json["rows"]
    assert "lr" not in full["chosen"]
    assert "batch_size" not in sage["chosen"]
    assert {cell.run.training.lr for cell in trained.cells} == {0.003}
    assert "batch_size 64" in sage["settings"]


def test_a_final_training_that_fails_is_exit_code_1_and_a_row(trained):
    trained.ends = {"full, seed 1": Outcome(status=FAILED, error="no memory")}
    ended = tune(*FEW, *SHORT)
    assert ended.code == 1
    assert "full: 1 of 2 failed: no memory" in ended.out
    assert ended.err.endswith("final trainings that failed: 1; the same command tries them again\n")
    trained.ends.clear()
    assert tune(*FEW, *SHORT).code == 0


def test_a_method_none_of_whose_trials_finished_is_exit_code_1(trained):
    failed = Outcome(status=FAILED, error="no memory")
    trained.ends = {f"full, trial {number}": failed for number in (1, 2)}
    ended = tune(*FEW, *SHORT)
    assert ended.code == 1
    assert "full: none of 2 trials finished: no memory" in ended.out
    assert ended.err.endswith("no trial of full finished; trials.md says why\n")


def test_a_method_that_is_not_defined_is_no_failure(trained):
    trained.ends = {"full, trial 1": Outcome(status=UNDEFINED, error="not here")}
    ended = tune(*FEW, *SHORT)
    assert (ended.code, "full: not defined: not here" in ended.out) == (0, True)


def test_ctrl_c_says_how_to_go_on(trained, here):
    trained.ends = {"full, trial 2": KeyboardInterrupt()}
    ended = tune(*FEW, *SHORT)
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.splitlines()[-1] == (
        f"graphfm: interrupted; {OUT} keeps the search so far (2 trainings); the same command "
        "continues from there"
    )
    assert (here / OUT / "trials.md").exists()
    trained.ends.clear()
    assert len(tune(*FEW, *SHORT, "--json").json["rows"]) == 2


def test_a_terminal_gets_a_live_table(trained, monkeypatch):
    trained.pause = 0.15  # the table is drawn twice a second

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "argv", ["graphfm", "tune", *FEW, *SHORT])
    out, err = io.StringIO(), Terminal()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit):
        main()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err.getvalue())
    assert "best settings so far" in shown
    assert "full, trial 1: validation" not in shown  # the table has it
    assert out.getvalue().splitlines()[1].startswith("method")


def test_without_optuna_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(tune(*FEW), r"needs Optuna; install it: pip install 'graphfm\[tune\]'")
    with pytest.raises(package.InputError, match=r"pip install 'graphfm\[tune\]'"):
        package.tune("synthetic:small:0.02", "full", trials=1)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((*SMALL, "--methods", "full"), "there is no budget; give minutes"),
        ((*FEW, "--set", "gas.parts=3"), "gas has settings but is not compared"),
        ((*FEW, "--lr", "fast"), "--lr is 'fast'; expected a number"),
        ((*FEW, "--minutes", "0"), "minutes is 0.0; expected a number above 0"),
        ((*FEW, "--methods", "fulll"), "unknown method 'fulll'"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, reason, here):
    refused(tune(*arguments), reason)
    assert list(here.iterdir()) == []


def test_a_method_of_ones_own_with_an_option_of_its_own(here, trained):
    write_module(here, "command_module")
    own = ("--methods", "command_module:smoothed", "--decay", "0.5")
    ended = tune(*SMALL, *SHORT, *own, "--trials", "2", "--seeds", "1", "--json")
    assert ended.code == 0, ended.err
    (row,) = ended.json["rows"]
    assert (row["method"], row["std"]) == ("command_module:smoothed", None)
    assert {cell.run.method_settings["decay"] for cell in trained.cells} == {0.5}


def test_python_returns_the_rows(here, trained):
    rows = package.tune(
        Path("synthetic:small:0.02"), ["full"], trials=2, seeds=2, budget_epochs=2, hidden=8,
        device="cpu", jobs=1, out="found",
    )  # fmt: skip
    assert [row.method for row in rows] == ["full"]
    assert (rows[0].std, rows[0].trials) == (rows[0].test_std, 2)
    assert json.loads((here / "found" / "tuning.json").read_text())["asked"]["trials"] == 2
    with pytest.raises(package.InputError, match="cannot tune on a Graph"):
        package.tune(package.load("synthetic:small:0.02"), trials=1)
