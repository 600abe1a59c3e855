"""The runner and how it learns the time that is left."""

from dataclasses import replace

import pytest

from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import FAILED, FINISHED, UNDEFINED, Outcome
from graphfm.experiments.progress import Progress, duration
from graphfm.experiments.runner import Observer, run_cells
from graphfm.experiments.store import MemoryStore
from graphfm.runs.run import Run

RUNS = {name: Run.make(method=name) for name in ("full", "graphsage", "gas")}


def cell(method: str, seed: int = 0) -> Cell:
    run = replace(RUNS[method], training=replace(RUNS[method].training, seed=seed))
    return Cell(run, f"{method}, seed {seed}")


def done(seconds: float | None = 1.0) -> Outcome:
    return Outcome(status=FINISHED, measured={}, seconds=seconds)


CELLS = [cell(method, seed) for seed in (0, 1) for method in RUNS]


def test_cells_run_in_order_and_are_kept():
    store, ran = MemoryStore(), []

    def run(one: Cell) -> Outcome:
        ran.append(one.label)
        return done(None)

    found = list(run_cells(CELLS, store, run))
    assert ran == [one.label for one in CELLS]
    assert [one for one, _ in found] == CELLS
    assert store.outcomes.keys() == {one.key for one in CELLS}
    assert all(outcome.seconds >= 0 for outcome in store.outcomes.values())


def test_cells_with_the_same_key_run_once():
    ran = []
    same = [cell("full"), Cell(RUNS["full"], "the same under another name")]
    list(run_cells(same, MemoryStore(), lambda one: ran.append(one) or done()))
    assert ran == same[:1]


def test_an_undefined_method_is_tried_once_and_a_failed_cell_once():
    ran = []

    def run(one: Cell) -> Outcome:
        ran.append(one.label)
        ends = {"gas": UNDEFINED, "full": FAILED}
        status = ends.get(one.run.method)
        return done() if status is None else Outcome(status=status, error="e")

    store = MemoryStore()
    list(run_cells(CELLS, store, run))
    assert ran == [one.label for one in CELLS[:5]]
    ran.clear()
    list(run_cells(CELLS, store, run))
    assert ran == ["full, seed 0", "full, seed 1"]


def test_there_is_no_estimate_before_a_cell_ended():
    assert Progress(CELLS, {}).seconds_left() is None


def test_the_time_left_is_learned_from_cells_of_the_same_kind(monkeypatch):
    now = 100.0
    monkeypatch.setattr("graphfm.experiments.progress.time.monotonic", lambda: now)
    outcomes = {CELLS[0].key: done(10), CELLS[1].key: done(40)}
    progress = Progress(CELLS, outcomes)
    assert progress.seconds_left() == 25 + 10 + 40 + 25  # gas as the others on average
    assert progress.start(0)
    now += 5
    assert (progress.running, progress.number) == (CELLS[2], 3)
    assert progress.seconds_left() == 20 + 75
    now += 95  # longer than expected: nothing is left of it
    assert progress.seconds_left() == 75
    outcomes[CELLS[2].key] = done(100)
    progress.end(outcomes[CELLS[2].key])
    assert (progress.number, progress.num_done) == (3, 3)
    assert progress.seconds_left() == 10 + 40 + 100


def test_other_seeds_of_an_undefined_method_take_no_time():
    outcomes = {CELLS[0].key: done(10), CELLS[2].key: Outcome(status=UNDEFINED, error="e")}
    progress = Progress(CELLS, outcomes)
    assert progress.num_done == 3
    assert progress.seconds_left() == 10 + 10 + 10  # graphsage twice, full once


def test_an_observer_knows_what_runs():
    class Notes(Observer):
        def __init__(self):
            self.seen = []

        def on_begin(self, progress):
            self.progress = progress

        def on_end(self, one, outcome):
            self.seen.append((self.progress.number, self.progress.num_done))

    notes = Notes()
    list(run_cells(CELLS, MemoryStore(), lambda one: done(), notes))
    assert notes.seen == [(number, number) for number in range(1, 7)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.6, "60 s"), (99, "99 s"), (240, "4 min"), (4800, "80 min"),
     (7800, "2 h 10 min"), (7200, "2 h"), (10**6, "277 h")],
)  # fmt: skip
def test_times_are_told_as_people_say_them(seconds, text):
    assert duration(seconds) == text
