"""Cells that need no training."""

from collections.abc import Callable

import pytest

from graphfm.experiments.compare import Plan
from graphfm.experiments.outcome import BROKEN, FAILED, FINISHED, UNDEFINED, Outcome
from graphfm.training.callbacks import Score

MakeScore = Callable[..., Score]


@pytest.fixture
def make_score() -> MakeScore:
    def make(test: float | None = 0.5, **changes) -> Score:
        numbers = {
            "val": 0.6, "test": test, "best_epoch": 3, "epochs": 5, "seconds_per_epoch": 0.25,
            "seconds_to_best": 2.0, "prepare_seconds": 1.0, "nodes_per_step": 100.0,
            "edges_per_step": 1000.0, "peak_bytes": 300 * 2**20,
        }  # fmt: skip
        return Score(**(numbers | changes))

    return make


class FakeRunner:
    """Stands in for processes: knows what it ran, and ends cells as it is told."""

    def __init__(self, make_score: MakeScore) -> None:
        self.make_score, self.ran = make_score, list[str]()
        self.ends: dict[str, str | BaseException] = {}  # by label: a status, or what to raise

    def __call__(self, cell, fingerprint, scratch) -> Outcome:
        self.ran.append(cell.label)
        end = self.ends.get(cell.label, FINISHED)
        if isinstance(end, BaseException):
            raise end
        if end in (FAILED, UNDEFINED, BROKEN):
            return Outcome(status=end, error=f"{cell.run.method} is no good; try another")
        return Outcome(status=FINISHED, score=self.make_score(0.5 + cell.run.training.seed / 10))


@pytest.fixture
def runner(make_score) -> FakeRunner:
    return FakeRunner(make_score)


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    def make(methods="full,graphsage", seeds=2, **options) -> Plan:
        place = {"dataset": "synthetic:small:0.02", "device": "cpu"}
        return Plan.make(**place, methods=methods, seeds=seeds, **options)

    return make
