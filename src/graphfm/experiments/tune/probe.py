"""Measures how long an epoch of each method takes, and chooses how long the trainings may be."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphfm.experiments.outcome import FINISHED, Outcome
from graphfm.experiments.tune.budget import MARGIN, makespan, threads_of
from graphfm.experiments.tune.lease import Lease
from graphfm.experiments.tune.pace import Pace
from graphfm.experiments.tune.plan import Search, TunePlan
from graphfm.experiments.tune.space import with_settings
from graphfm.experiments.workers import Job, Workers

EPOCHS = 3  # of a training that is only timed
TRIALS, FEW = 8, 2  # of each method, trained to their end, that there should be time for
TENTH = 10  # hundredths of the epochs: before they become fewer than that, trials do
# Factors in hundredths and numbers of trials, the best first.
CHOICES = (
    *((hundredths, TRIALS) for hundredths in range(100, TENTH, -1)),
    *((TENTH, trials) for trials in range(TRIALS, FEW, -1)),
    *((hundredths, FEW) for hundredths in range(TENTH, 0, -1)),
)


@dataclass(frozen=True)
class Cost:
    """Seconds of a training: once, and for each epoch with its evaluation."""

    once: float
    epoch: float

    def of(self, epochs: int) -> float:
        return self.once + epochs * self.epoch


def measure(
    searches: Sequence[Search], workers: Workers, fingerprint: str, lease: Lease
) -> dict[str, Cost]:
    """What a training of each method costs, under the load of the search.

    All workers are busy for as long as this takes, as they will be later, so that some methods are
    measured twice; the dearer counts. A method that cannot be trained is left out.
    """
    rounds = math.ceil(len(searches) / workers.jobs)
    todo = itertools.islice(itertools.cycle(searches), rounds * workers.jobs)
    scratch = (lease.path / f"probe-{n}" for n in itertools.count())
    clocks, found = dict[Job, list[tuple[int, float]]](), dict[str, Cost]()
    while True:
        while workers.has_room and (search := next(todo, None)) is not None:
            clocks[_start(search, workers, fingerprint, next(scratch))] = []
        if not workers.running:
            return found
        happened = workers.wait(seconds=1.0)
        if happened is None:
            continue
        job, event = happened
        if not isinstance(event, Outcome):
            clocks[job].append((event["epoch"], time.monotonic()))
        elif (cost := _cost(clocks[job], event)) is not None:
            method = job.cell.run.method
            found[method] = max(cost, found.get(method, cost), key=lambda known: known.epoch)


def _start(search: Search, workers: Workers, fingerprint: str, scratch: Path) -> Job:
    cell = search.cell({}, 0)
    epochs = max(EPOCHS, 2 * search.run.training.eval_every)
    run = with_settings(cell.run, {"epochs": epochs, "patience": 0})
    cell = replace(cell, run=run, label=f"{search.method}, a few epochs")
    return workers.start(cell, fingerprint, scratch, follow=True, threads=threads_of(workers.jobs))


def _cost(clock: Sequence[tuple[int, float]], outcome: Outcome) -> Cost | None:
    """The first epoch is the slowest, and counts as something that is paid once."""
    if outcome.status != FINISHED or outcome.seconds is None or len(clock) < 2:
        return None
    (first, began), (last, ended) = clock[0], clock[-1]
    epoch = (ended - began) / (last - first)
    return Cost(max(outcome.seconds - last * epoch, 0.0), epoch)


def choose_pace(plan: TunePlan, costs: Mapping[str, Cost], jobs: int, elapsed: float) -> Pace:
    """The longest trainings for which the final ones and enough trials fit into the minutes."""
    assert plan.minutes is not None
    pace = Pace(
        factor=1.0, minutes=plan.minutes, methods=len(plan.searches), seeds=plan.base.seeds,
        seconds=elapsed, expected={},
    )  # fmt: skip
    for hundredths, trials in CHOICES:
        pace = replace(pace, factor=hundredths / 100)
        epochs = plan.epochs_at(pace)
        expected = {method: cost.of(epochs[method]) for method, cost in costs.items()}
        pace = replace(pace, expected=expected)
        each = list(expected.values())
        final = MARGIN * makespan(each * plan.base.seeds, jobs)
        if elapsed + final + trials * sum(each) / jobs <= 60 * plan.minutes:
            return pace
    return replace(pace, fits=False)
