"""Methods and backbones of a user's own on the command line, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphfm
from tests.own_module import write_module

SMALL = "synthetic:small:0.02"
TRAIN = ("train", "--dataset", SMALL, "--epochs", "3", "--device", "cpu", "--hidden", "8")
OWN = ("--method", "mine:smoothed", "--backbone", "mine:Scaled")
SCRIPT = """
import graphfm
from graphfm import Method
from graphfm.samplers.neighbor import NeighborSampler

def paired(*, fanout: tuple[int, ...] = (2,)) -> Method:
    return Method(NeighborSampler(fanout=fanout, batch_size=64))

def main():
    rows = graphfm.compare("synthetic:small:0.02", ["full", paired], seeds=1, budget_epochs=1,
                           hidden=8, device="cpu", out="compared")
    print([(row.method, len(row.scores), row.note) for row in rows])
    graphfm.train("synthetic:small:0.02", method=paired, epochs=1, out="run", device="cpu")

"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    write_module(tmp_path, "mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(*arguments) -> subprocess.CompletedProcess[str]:
    source = str(Path(graphfm.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment
    )


def command(*arguments) -> subprocess.CompletedProcess[str]:
    """As the installed program runs: the current folder is not importable by itself."""
    return start("-P", "-c", "from graphfm.cli import entry; entry()", *arguments)


def refused(ended: subprocess.CompletedProcess[str], reason: str) -> None:
    assert (ended.returncode, ended.stdout) == (2, ""), ended
    assert ended.stderr.startswith("graphfm: "), ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert reason in ended.stderr, ended.stderr


def test_a_method_and_a_backbone_from_training_to_prediction(here):
    options = ("--decay", "0.5", "--weights", "0.5,2", "--strict", "--mode", "slow", "--limit", "4")
    ended = command(*TRAIN, *OWN, *options, "--scale", "2", "--out", "run", "--json")
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert (record["method"], record["backbone"]) == ("mine:smoothed", "mine:Scaled")
    run = json.loads((here / "run/config.json").read_text())["run"]
    assert run["method_settings"] == {
        "decay": 0.5, "fanout": [2], "weights": [0.5, 2.0], "mode": "slow", "limit": 4,
        "strict": True,
    }  # fmt: skip
    assert run["backbone_settings"]["scale"] == 2.0

    asked = ("--backbone", "mine:Scaled", "--json")
    scores = json.loads(command("evaluate", "run", *asked).stdout)
    assert (scores["val"], scores["test"]) == (record["val"], record["test"])
    predicted = command("predict", "run", "--out", "p.csv", *asked)
    assert json.loads(predicted.stdout)["nodes"] == 200
    resumed = command("train", "--resume", "run", *OWN, "--json")
    assert json.loads(resumed.stdout)["val"] == record["val"]


def test_a_run_that_was_cut_short_goes_on(here):
    assert command(*TRAIN, *OWN, "--out", "run").returncode == 0
    (here / "run/result.json").unlink()
    resumed = command("train", "--resume", "run", *OWN, "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["epochs"] == 3


def test_nothing_is_imported_because_a_folder_names_it(here):
    assert command(*TRAIN, *OWN, "--out", "run").returncode == 0
    (here / "mine.py").write_text("open('ran', 'w')")
    method = "name it; add --method mine:smoothed, or in Python give method=smoothed"
    backbone = "name it; add --backbone mine:Scaled, or in Python give backbone=Scaled"
    refused(command("train", "--resume", "run"), method)
    refused(command("evaluate", "run"), backbone)
    refused(command("predict", "run", "--out", "p.csv"), backbone)
    assert not (here / "ran").exists()


def test_another_name_than_the_recorded_one_is_refused(here):
    assert command(*TRAIN, "--method", "mine:smoothed", "--out", "run").returncode == 0
    refused(
        command("train", "--resume", "run", "--method", "gas"), "but gas was given; give mine:smoot"
    )
    assert command("evaluate", "run").returncode == 0  # takes no method


def test_the_options_of_ones_own_are_in_the_help():
    shown = command("train", *OWN, "--help").stdout
    assert "--decay X" in shown
    assert "How much of the fresh aggregate is taken. (mine:smoothed)" in " ".join(shown.split())
    assert "--[no-]strict" in shown
    assert "--weights X[,X]" in shown
    assert "--scale X" in shown
    assert "--decay" not in command("train", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--method", "mine:smoothed", "--decay", "x"), "--decay is 'x'; expected a number; see"),
        (("--method", "mine:smoothed", "--mode", "x"), "mode is x; expected fast or slow"),
        (("--decay", "0.5"), "No such option: --decay"),
        (("--method=nowhere:x",), "method is nowhere:x, but there is no module named nowhere"),
        (("--method", "mine:x"), "but module mine has no function or class x"),
        (("--method", "mine:broken"), "mine:broken returned a list; expected a graphfm.Method"),
        (("--backbone", "mine:smoothed"), "backbone is a function; expected a name"),
    ],
)
def test_a_wrong_name_is_one_line(here, arguments, reason):
    refused(command(*TRAIN, *arguments), reason)
    assert not (here / "runs").exists()


def test_ones_own_is_compared_with_ours(here):
    arguments = ("--dataset", SMALL, "--seeds", 1, "--budget-epochs", 1, "--device", "cpu")
    ended = command(
        "compare", *arguments, "--methods", "graphsage,mine:smoothed", "--backbone", "mine:Scaled",
        "--set", "mine:smoothed.decay=0.3", "--json",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert record["out"] == f"runs/compare-{SMALL.replace(':', '-')}-mine-Scaled"
    rows = {row["method"]: row for row in record["rows"]}
    assert rows.keys() == {"graphsage", "mine:smoothed"}
    assert all(row["test"] is not None for row in rows.values()), rows
    assert "decay 0.3" in rows["mine:smoothed"]["settings"]


@pytest.mark.parametrize("how", ["file", "module"])
def test_a_method_of_a_script_reaches_its_comparison(here, how):
    (here / "script.py").write_text(SCRIPT + "if __name__ == '__main__':\n    main()\n")
    ended = start("script.py") if how == "file" else start("-m", "script")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "[('full', 1, ''), ('script:paired', 1, '')]\n"
    resumed = command("train", "--resume", "run", "--method", "script:paired")
    assert resumed.returncode == 0, resumed.stderr


def test_a_script_without_a_guard_is_told_to_have_one(here):
    (here / "script.py").write_text(SCRIPT + "main()\n")
    ended = start("script.py")
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert "put the call under \"if __name__ == '__main__':\"" in last


@pytest.mark.parametrize("command", ["train", "compare"])
def test_no_file_of_the_current_folder_runs_unless_it_is_named(tmp_path, command):
    """Libraries look for optional modules; one of that name here must not be found."""
    for name in ("tabulate", "gmpy2", "colorama", "flint", "gmpy"):
        (tmp_path / f"{name}.py").write_text("open('HIT', 'w').close()\nraise ImportError")
    few = ("--epochs", "1") if command == "train" else ("--budget-epochs", "1", "--seeds", "1")
    methods = () if command == "train" else ("--methods", "full")
    ended = subprocess.run(
        [sys.executable, "-P", "-c", "from graphfm.cli import entry; entry()", command,
         "--dataset", "synthetic:small:0.02", "--device", "cpu", *few, *methods],
        cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(graphfm.__file__).parents[1])},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "HIT").exists()
