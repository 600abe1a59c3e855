"""Who is next, when the search is over, and how much is kept for the final trainings."""

import time

import pytest
import torch

from graphfm.experiments.tune import budget as budgets
from graphfm.experiments.tune.budget import Budget, choose_jobs, threads_of
from graphfm.experiments.tune.record import FAILED, RUNNING, STOPPED, TrialRecord
from graphfm.runs.memory_plan import MemoryPlan


def trial(method: str, seconds: float = 10.0, **changes) -> TrialRecord:
    told = {"state": "complete", "val": 0.5, "settings": {}, "number": 1, "seconds": seconds}
    return TrialRecord(method=method, **{**told, **changes})


def budget(plan, jobs: int = 1, elapsed: float = 0.0) -> Budget:
    return Budget(plan, jobs, time.monotonic() - elapsed)


def chosen(plan, records, **options) -> str | None:
    search = budget(plan, **options).choose(records)
    return None if search is None else search.method


def test_first_every_method_has_its_defaults_however_short_the_time_is(make_plan):
    plan = make_plan(minutes=1e-6)
    assert chosen(plan, []) == "full"
    assert chosen(plan, [trial("full")]) == "graphsage"
    assert chosen(plan, [trial("full"), trial("graphsage", state=RUNNING)]) is None


def test_with_trials_the_fewest_are_next_up_to_their_number(make_plan):
    plan, both = make_plan(trials=2), [trial("full"), trial("graphsage")]
    assert chosen(plan, [*both, trial("full")]) == "graphsage"
    assert chosen(plan, [*both, trial("graphsage", state=RUNNING)]) == "full"
    assert chosen(plan, both * 2) is None


def test_with_minutes_the_one_that_had_the_least_time_is_next(make_plan):
    plan = make_plan(minutes=60)
    records = [trial("full", 100), trial("graphsage", 10), trial("graphsage", 20, state=STOPPED)]
    assert chosen(plan, records) == "graphsage"
    assert chosen(plan, [*records, trial("graphsage", 90)]) == "full"


def test_trainings_at_a_time_share_the_time():
    assert trial("full", 100, jobs=4).cost == 25


def test_the_final_trainings_fit_into_the_minutes(make_plan):
    plan, both = make_plan(minutes=10, seeds=3), [trial("full", 20), trial("graphsage", 40)]
    assert budget(plan).reserve([]) == 200  # a third, as long as nothing is known
    assert budget(plan).reserve(both[:1]) == 200
    assert budget(plan).reserve(both) == pytest.approx(1.15 * 3 * 60)
    assert budget(plan, jobs=2).reserve(both) == pytest.approx(1.15 * 100)  # 20 40 20 40 20 40
    left = budget(plan, elapsed=100).seconds_left(both)
    assert left == pytest.approx(600 - 207 - 100, abs=1)
    assert budget(plan, elapsed=0).seconds_left(both) == pytest.approx(600 - 207 - 60, abs=1)


def test_time_that_reaches_to_no_first_look_is_not_begun(make_plan):
    plan = make_plan("full", minutes=10, seeds=1)
    records = [trial("full", 100)]
    assert chosen(plan, records, elapsed=600 - 115 - 30) == "full"
    assert chosen(plan, records, elapsed=600 - 115 - 10) is None


def test_what_is_too_long_is_foreseen(make_plan):
    plan = make_plan("full", minutes=1, seeds=2)
    assert budget(plan, elapsed=50).overrun([trial("full", 50)]) == pytest.approx(105, abs=1)
    assert budget(make_plan(trials=2)).overrun([trial("full", 50)]) == 0


def test_a_method_that_never_works_is_given_up(make_plan):
    plan = make_plan("full", trials=100)
    failed = [trial("full", state=FAILED, val=None, note="no memory")] * 4
    assert chosen(plan, failed) == "full"
    assert chosen(plan, [*failed, failed[0]]) is None
    assert chosen(plan, [*failed, failed[0], trial("full")]) == "full"
    undefined = trial("full", state=FAILED, undefined=True, is_default=True)
    assert chosen(plan, [undefined]) is None


def test_nothing_is_tried_twice_where_there_is_nothing_else_to_try(make_plan):
    plan = make_plan("full", trials=9, lr=0.1, dropout=0.0, weight_decay=0.0, schedule="constant")
    assert chosen(plan, []) == "full"
    assert chosen(plan, [trial("full")]) is None


@pytest.mark.parametrize(
    ("free", "device", "jobs"),
    [(100, "cpu", 12), (100, "cuda", 8), (5, "cpu", 2), (1, "cpu", 1), (5, "cuda", 2)],
)
def test_as_many_run_at_a_time_as_cores_and_memory_allow(monkeypatch, free, device, jobs):
    monkeypatch.setattr(budgets, "num_cores", lambda: 12)
    plan = MemoryPlan(
        device=device, graph=1 << 30, indices=0, features=0, histories=0, weights=0,
        step=1 << 29, evaluation=0, free=free << 30,
    )  # fmt: skip
    assert choose_jobs([plan], torch.device(device)) == jobs
    assert choose_jobs([], torch.device(device)) == 1


def test_trainings_share_the_cores(monkeypatch):
    monkeypatch.setattr(budgets, "num_cores", lambda: 12)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    assert [threads_of(jobs) for jobs in (1, 4, 12, 20)] == [6, 3, 1, 1]
