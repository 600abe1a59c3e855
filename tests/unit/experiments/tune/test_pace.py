"""How many epochs a search in minutes has: what is timed, chosen, kept and said."""

import json
import time
from dataclasses import replace

import pytest

from graphfm import InputError
from graphfm.experiments.cell import VALIDATION
from graphfm.experiments.outcome import UNDEFINED, Outcome
from graphfm.experiments.runner import Observer
from graphfm.experiments.tune import run as running
from graphfm.experiments.tune import tune
from graphfm.experiments.tune.budget import Budget
from graphfm.experiments.tune.lease import Lease
from graphfm.experiments.tune.pace import Pace, stored_pace
from graphfm.experiments.tune.probe import Cost, choose_pace, measure
from graphfm.experiments.workers import Workers
from graphfm.methods import METHODS
from graphfm.training.settings import Training
from tests.unit.experiments.tune.test_budget import trial
from tests.unit.experiments.tune.training import draw_nothing

OWN = {"full": METHODS["full"].trains_with["epochs"], "graphsage": Training().epochs}  # epochs
SECOND = {"full": Cost(0.0, 1.0), "graphsage": Cost(0.0, 1.0)}  # of an epoch
ALL = sum(OWN.values())  # seconds of one training of both
SHORT = Pace(factor=0.03, minutes=0.02, methods=2, seeds=2, seconds=0.5, expected={"full": 0.1})
PACED = {"full": {round(0.03 * OWN["full"])}, "graphsage": {5}}  # at least 5
SAID = (
    "epochs are 0.03 times each method's own (at least 5), so that 2 methods with 2 seeds fit into "
    "0.02 minutes; --budget-epochs sets them"
)


class Lines(Observer):
    def __init__(self) -> None:
        self.lines = list[str]()

    def on_message(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def make(make_plan):
    """A plan in minutes whose methods have their own epochs."""
    return lambda *methods, minutes=0.02, **options: make_plan(
        *methods, **{"minutes": minutes, "budget_epochs": None, **options}
    )


@pytest.fixture
def timed(monkeypatch) -> list[int]:
    """Nothing is timed, and the pace is `SHORT`; a line for each time that it is chosen."""
    draw_nothing(monkeypatch)
    found = list[int]()

    def choose(plan, costs, jobs, elapsed) -> Pace:
        found.append(jobs)
        return SHORT

    monkeypatch.setattr(running, "measure", lambda *a: {})
    monkeypatch.setattr(running, "choose_pace", choose)
    return found


def epochs_of(here) -> dict[str, set[int]]:
    found = dict[str, set[int]]()
    for cell in here.cells:
        found.setdefault(cell.run.method, set()).add(cell.run.training.epochs)
    return found


def test_the_factor_leaves_time_for_the_final_trainings_and_eight_trials(make):
    whole = (1.15 * 2 + 8) * ALL  # seconds of two seeds and eight trials of both
    half = {method: epochs // 2 for method, epochs in OWN.items()}
    at = lambda share, elapsed=0.0, jobs=1: choose_pace(  # noqa: E731
        make(minutes=(share * whole + 1) / 60), SECOND, jobs, elapsed
    )
    assert (at(0.5).factor, at(0.5).expected) == (0.5, half)
    assert at(0.5, elapsed=0.2 * whole).factor == 0.3
    assert at(0.5, jobs=2).factor > 0.8  # trainings at a time
    assert (at(1).factor, at(9).factor, at(9).in_words()) == (1, 1, "")
    pace = at(0.5)
    assert (pace.methods, pace.seeds, pace.fits) == (2, 2, True)
    assert make().epochs_at(pace) == half
    own = make(own={"full": {"epochs": 7}})
    assert own.epochs_at(pace) == half | {"full": 7}
    assert own.paced(pace).epochs_at(pace) == half | {"full": 7}


def test_in_a_short_time_there_are_fewer_trials_and_then_the_fewest_epochs(make):
    at = lambda seconds: choose_pace(make(minutes=seconds / 60), SECOND, 1, 0.0)  # noqa: E731
    assert at(0.1 * ALL * (2.3 + 8) + 1).factor == 0.1
    assert at(0.1 * ALL * (2.3 + 3) + 1).factor == 0.1
    assert at(0.06 * ALL * (2.3 + 2) + 1).factor == 0.06
    least = at(10)
    assert make().epochs_at(least) == {"full": 5, "graphsage": 5}
    assert (least.fits, "and may still exceed 0.166667 minutes" in least.in_words()) == (
        False,
        True,
    )
    assert replace(least, factor=0.1).epochs(3) == 3  # never more than its own


def test_where_nothing_could_be_timed_nothing_is_changed(make):
    assert choose_pace(make(), {}, 1, 0.0).factor == 1


def test_what_a_training_costs_is_measured_with_all_workers_busy(tmp_path, make, here):
    here.pause = 0.1
    here.ends = {"gas, a few epochs": Outcome(status=UNDEFINED, error="not here")}
    plan = make("full,graphsage,gas")
    with Lease.take(tmp_path) as lease, Workers(2, here) as workers:
        graph = None  # whatever graph has the name
        costs = measure(plan.searches, workers, graph, lease)
    assert sorted(here.labels) == [
        f"{method}, a few epochs" for method in ("full", "full", "gas", "graphsage")
    ]
    assert {cell.measure for cell in here.cells} == {VALIDATION}
    assert costs.keys() == {"full", "graphsage"}
    assert all(0.1 <= cost.epoch < 2 and cost.once >= 0 for cost in costs.values())


def test_trials_and_final_trainings_have_the_epochs_and_the_caption_says_so(
    tmp_path, make, here, timed, lines
):
    rows = tune(make(), tmp_path, train=here, observer=lines)
    assert epochs_of(here) == PACED
    assert [len(row.scores) for row in rows] == [2, 2]
    assert lines.lines.count(SAID) == 1
    table = (tmp_path / "table.md").read_text()
    assert f"; {SAID}; the settings were chosen on validation" in " ".join(table.split())
    assert (
        json.loads((tmp_path / "tuning.json").read_text())["settings"]["epochs"]["factor"] == 0.03
    )
    assert stored_pace(tmp_path / "tuning.json") == SHORT
    assert timed == [1]


def test_a_later_start_keeps_the_epochs_whatever_its_budget_is(tmp_path, make, here, timed, lines):
    tune(make(), tmp_path, train=here)
    for options in ({}, {"minutes": 0.03}, {"minutes": None, "trials": 1, "seeds": 3}):
        tune(make(**options), tmp_path, train=here, observer=lines)
    assert (timed, epochs_of(here)) == ([1], PACED)
    kept = (
        "epochs stay 0.03 times each method's own (at least 5), as this folder has them since it "
        "was begun with 0.02 minutes"
    )
    assert [line for line in lines.lines if line.startswith("epochs")] == [SAID, kept, kept]
    with pytest.raises(InputError, match=r"epochs factor 0\.03, but this command has none"):
        tune(make(budget_epochs=OWN["full"]), tmp_path, train=here)  # those of the network


@pytest.mark.parametrize(
    "options", [{"budget_epochs": 3}, {"trials": 1, "minutes": None}, {"trials": 1}]
)
def test_with_trials_or_given_epochs_nothing_is_timed_now_or_later(
    tmp_path, make, here, timed, lines, options
):
    plan = make("full", seeds=1, patience=1, **options)
    tune(plan, tmp_path, train=here, observer=lines)
    tune(replace(plan, trials=None, minutes=0.01), tmp_path, train=here, observer=lines)
    assert (timed, epochs_of(here)) == ([], {"full": {options.get("budget_epochs", OWN["full"])}})
    assert not any(line.startswith("epochs") for line in lines.lines)
    assert "times each method's own" not in (tmp_path / "table.md").read_text()


def test_interrupted_while_timing_it_begins_again(tmp_path, make, here, timed, monkeypatch):
    here.ends = {"full, a few epochs": KeyboardInterrupt()}
    with monkeypatch.context() as patch:
        patch.setattr(running, "measure", measure)
        with pytest.raises(KeyboardInterrupt):
            tune(make(), tmp_path, train=here)
    assert [item.name for item in tmp_path.iterdir()] == [".workers"]
    here.cells.clear()
    tune(make(), tmp_path, train=here)
    assert (timed, epochs_of(here)) == ([1], PACED)


def test_what_was_timed_is_kept_for_the_final_trainings_until_trials_tell(make):
    pace = replace(SHORT, seconds=30, expected={"full": 20, "graphsage": 40})
    plan = replace(make(minutes=10, seeds=3), pace=pace)
    budget = Budget(plan, 1, time.monotonic())
    assert budget.reserve([]) == pytest.approx(1.15 * 3 * 60)
    assert budget.reserve([trial("full", 10)]) == pytest.approx(1.15 * 3 * 50)
    assert budget.seconds_left([trial("full", 10)]) == pytest.approx(600 - 172.5 - 10 - 30, abs=1)
