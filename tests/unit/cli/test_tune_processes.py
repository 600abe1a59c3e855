"""graphfm tune is killed, or started twice: what is kept, and that no trial is done twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from graphfm.experiments.tune import TunePlan, tune
from tests.unit.cli.test_compare_processes import children, is_gone, linux, wait_for
from tests.unit.experiments.tune.training import Here

ROOT = Path(__file__).parents[3]
OPTIONS = {"dataset": "synthetic:small:0.02", "device": "cpu", "hidden": 8, "budget_epochs": 2}
# Trains in its own process: a child for each trial would take seconds to begin.
SHARED = """
import json, sys
from pathlib import Path
from graphfm.experiments.tune import TunePlan, tune
from tests.unit.experiments.tune.training import Here

options, ready = json.loads(sys.argv[1]), Path(sys.argv[2])
here = Here(pause=0.15)
ready.touch()
while len(list(ready.parent.glob("ready-*"))) < 2:
    pass
rows = tune(TunePlan.make(**options), "out", train=here)
print(json.dumps([here.labels, [row.to_json() for row in rows]]))
"""

pytestmark = [pytest.mark.usefixtures("here"), linux]


def begin(*arguments: str) -> subprocess.Popen[str]:
    """A process in a group of its own, as a shell starts it."""
    return subprocess.Popen(
        [sys.executable, "-c", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )


def test_killed_in_the_middle_it_goes_on_and_the_number_of_trials_is_right(here):
    """With trainings in processes of their own; the second start trains in this one."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in OPTIONS.items()]
    budget = ["--methods=full", "--trials=3", "--seeds=1", "--jobs=1", "--patience=0", "--out=out"]
    table = here / "out" / "trials.jsonl"
    process = begin("from graphfm.cli import main; main()", "tune", *flags, *budget)
    try:
        wait_for(lambda: table.exists() and table.read_bytes().endswith(b"\n"))
        running = wait_for(lambda: children(process.pid))  # the second trial
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    finally:
        process.kill()
    wait_for(lambda: all(map(is_gone, running)))
    (finished,) = (json.loads(line) for line in table.read_text().splitlines())
    assert (finished["state"], finished["is_default"]) == ("complete", True)

    plan = TunePlan.make(**OPTIONS, methods="full", trials=3, seeds=1, jobs=1, patience=0)
    train = Here()
    (row,) = tune(plan, "out", train=train)
    records = [json.loads(line) for line in table.read_text().splitlines()]
    assert records[0] == finished
    assert [record["state"] == "running" for record in records] == [False] * 3
    assert (row.trials, len(row.scores)) == (3, 1)
    assert [label for label in train.labels if "trial" in label] == [
        f"full, trial {record['number']}" for record in records[1:]
    ]
    assert [path.name for path in (here / "out" / ".workers").iterdir() if path.is_dir()] == []


def run_two(here, **options) -> list[list]:
    """What both of two processes trained, and their rows."""
    told = json.dumps({**OPTIONS, **options})
    both = [begin(SHARED, told, f"{here}/ready-{n}") for n in range(2)]
    try:
        ended = [process.communicate(timeout=120) for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], ended
    return [json.loads(out) for out, _ in ended]


def test_two_processes_share_the_trials_and_the_table(here):
    (one, first), (two, second) = run_two(here, methods="full,graphsage", trials=4, seeds=2, jobs=2)
    done = Counter(one + two)
    wanted = {f"{method}, trial {n}" for method in ("full", "graphsage") for n in (1, 2, 3, 4)}
    wanted |= {f"{method}, seed {n}" for method in ("full", "graphsage") for n in (0, 1)}
    assert done == Counter(wanted)
    assert all(any("trial" in label for label in labels) for labels in (one, two))
    assert first == second
    records = [
        json.loads(line) for line in (here / "out" / "trials.jsonl").read_text().splitlines()
    ]
    assert Counter(record["method"] for record in records) == {"full": 4, "graphsage": 4}
    assert len({json.dumps([r["method"], r["settings"]]) for r in records}) == 8


def test_two_processes_agree_on_the_epochs(here):
    (one, first), (two, second) = run_two(
        here, methods="full", minutes=0.1, seeds=1, jobs=1, budget_epochs=None
    )
    assert (one + two).count("full, a few epochs") == 1  # one times them, the other waits
    assert (one + two).count("full, trial 1") == (one + two).count("full, seed 0") == 1
    assert [len(rows) for rows in (first, second)] == [1, 1]
    factor = json.loads((here / "out" / "tuning.json").read_text())["settings"]["epochs"]["factor"]
    run = json.loads((here / "out" / "best" / "full" / "config.json").read_text())["run"]
    assert factor < 1
    assert run["training"]["epochs"] == max(5, round(200 * factor))
