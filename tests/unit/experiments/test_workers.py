"""Several cells at a time: what comes back, in which order, and that nothing is left running."""

import threading
import time
from pathlib import Path

import pytest

from graphfm import InputError, load
from graphfm.experiments import process
from graphfm.experiments.cell import VALIDATION, Cell
from graphfm.experiments.child import train_cell
from graphfm.experiments.outcome import BROKEN, FINISHED, STOPPED, UNDEFINED, Outcome
from graphfm.experiments.runner import Observer
from graphfm.experiments.store import MemoryStore
from graphfm.experiments.workers import Workers, run_together
from graphfm.runs.run import Run

SMALL = {"dataset": "synthetic:small:0.02", "device": "cpu", "epochs": 2, "hidden": 8}
ENDLESS = """
import json, sys, time
sys.stdin.readline()
for epoch in range(1000):
    print('epoch', json.dumps({'epoch': epoch, 'val': 0.5}), flush=True)
    time.sleep(0.02)
"""


def cells(number: int, **options) -> list[Cell]:
    runs = [Run.make(**SMALL, seed=seed, **options) for seed in range(number)]
    return [Cell(run, f"seed {run.training.seed}") for run in runs]


def until_end(workers: Workers):
    while True:
        event = workers.wait(10.0)
        if event is not None and isinstance(event[1], Outcome):
            return event[1]


def test_a_process_tells_of_its_epochs_until_it_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "PROGRAM", ENDLESS)
    with Workers(1) as workers:
        job = workers.start(cells(1)[0], None, tmp_path / "scratch", threads=1, follow=True)
        told = [workers.wait(10.0)[1]["epoch"] for _ in range(3)]
        assert not workers.has_room
        job.stop("it was behind")
        outcome = until_end(workers)
    assert told == [0, 1, 2]
    assert (outcome.status, outcome.error) == (STOPPED, "it was behind")
    assert workers.has_room


def test_leaving_the_block_ends_what_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "PROGRAM", ENDLESS)
    started = time.monotonic()
    with Workers(2) as workers:
        jobs = [
            workers.start(cell, None, tmp_path / cell.label, threads=1, follow=True)
            for cell in cells(2)
        ]
        workers.wait(10.0)
    assert time.monotonic() - started < 10
    assert not any(job.thread.is_alive() for job in jobs)


class Together:
    """Stands in for processes, and knows how many ran at a time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.ends: dict[str, str] = {}
        self.lock = threading.Lock()

    def __call__(self, cell: Cell, fingerprint, scratch: Path, watch) -> Outcome:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.05)
        with self.lock:
            self.now -= 1
        end = self.ends.get(cell.label, FINISHED)
        error = None if end == FINISHED else "no good"
        return Outcome(status=end, measured={} if error is None else None, error=error)


class Notes(Observer):
    def __init__(self) -> None:
        self.ended = list[str]()

    def on_begin(self, progress):
        self.progress, self.done = progress, progress.num_done

    def on_end(self, cell, outcome):
        self.ended.append(f"{self.progress.position}: {cell.label}")


def run_all(of: list[Cell], train: Together, store: MemoryStore, notes: Notes, jobs: int = 2):
    with Workers(jobs, train) as workers:

        def start(cell: Cell):
            return workers.start(cell, None, Path("."), threads=1)

        return [cell.label for cell, _ in run_together(of, store, workers, start, notes)]


def test_as_many_run_as_were_asked_for_and_each_is_kept_once():
    train, store, notes = Together(), MemoryStore(), Notes()
    assert sorted(run_all(cells(5), train, store, notes)) == [f"seed {n}" for n in range(5)]
    assert (train.most, len(store.outcomes)) == (2, 5)
    assert [line.split(":")[0] for line in notes.ended] == [f"{n} of 5" for n in range(1, 6)]
    assert notes.progress.seconds_left() == 0
    assert run_all(cells(6), train, store, notes) == ["seed 5"]
    assert notes.done == 5


def test_a_kind_that_is_not_defined_is_not_tried_with_every_seed():
    train, store, notes = Together(), MemoryStore(), Notes()
    train.ends = {f"seed {n}": UNDEFINED for n in range(9)}
    assert len(run_all(cells(9), train, store, notes)) <= 3


def test_a_run_that_cannot_be_built_is_an_error_of_the_whole():
    train = Together()
    train.ends = {"seed 0": BROKEN}
    with pytest.raises(InputError, match="seed 0 cannot be run: no good"):
        run_all(cells(2), train, MemoryStore(), Notes())


def test_a_trial_has_no_test_score_and_the_same_validation():
    run = Run.make(**SMALL)
    request = {"run": run.to_json(), "fingerprint": load(run.dataset).fingerprint}
    whole, trial = train_cell(request), train_cell({**request, "measure": VALIDATION})
    assert (trial.score.test, trial.score.val) == (None, whole.score.val)
    assert whole.score.test is not None


def test_a_cell_can_be_written_as_a_run(tmp_path):
    run = Run.make(**SMALL)
    request = {"run": run.to_json(), "fingerprint": None}
    whole = train_cell(request)
    kept = train_cell({**request, "folder": str(tmp_path / "run")})
    assert (kept.score.val, kept.score.test) == (whole.score.val, whole.score.test)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "config.json", "metrics.jsonl", "model.safetensors", "result.json", "curves.png",
    }  # fmt: skip
