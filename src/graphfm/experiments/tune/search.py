"""Runs trials until the budget is spent: starts them, hears of their epochs, stops the losers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphfm.errors import InputError
from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import FINISHED, UNDEFINED, Outcome
from graphfm.experiments.progress import Progress
from graphfm.experiments.runner import Observer
from graphfm.experiments.tune import record as state
from graphfm.experiments.tune.budget import Budget, threads_of
from graphfm.experiments.workers import Job, Workers
from graphfm.metrics.names import rounded

if TYPE_CHECKING:  # it imports Optuna, which may be missing
    from graphfm.experiments.tune.trials import Claimed, Trials

POLL = 0.5  # seconds between looks at the clock and at other processes


class SearchProgress(Progress):
    """How far the search is; how many trials there will be is known if their number is given."""

    def __init__(self, budget: Budget, records: state.Records) -> None:
        plan = budget.plan
        most = [plan.most(search) for search in plan.searches]
        self._total = None if plan.trials is None or plan.minutes is not None else int(sum(most))
        self._budget, self.records = budget, records
        self.outcomes: dict[str, Outcome] = {}
        self.running: Cell | None = None
        self.num_cells = self._total or 0
        self.num_done = sum(record.state != state.RUNNING for record in records)
        self.num_here = 0  # trials that ended in this process
        self._started = time.monotonic()

    @property
    def position(self) -> str:
        if self._total is not None:
            return f"{self.num_done} of {self._total} trials"
        return f"{self.num_done} trial{'' if self.num_done == 1 else 's'}"

    def begin(self, cell: Cell) -> None:
        self.running, self._started = cell, time.monotonic()

    def look(self, records: state.Records) -> None:
        self.records = records
        self.num_done = sum(record.state != state.RUNNING for record in records)

    def seconds_left(self) -> float | None:
        if self._total is None:  # then of everything: the final trainings belong to the minutes
            left = self._budget.seconds_left(self.records)
            return None if left is None else max(left, 0.0) + self._budget.reserve(self.records)
        costs = [r.cost for r in self.records if r.state != state.RUNNING]
        return (self._total - len(costs)) * sum(costs) / len(costs) if costs else None


class Searcher:
    """The search as this process takes part in it."""

    def __init__(
        self, trials: Trials, budget: Budget, workers: Workers, fingerprint: str, observer: Observer
    ) -> None:
        self.trials, self.budget, self.workers = trials, budget, workers
        self.fingerprint, self.observer = fingerprint, observer
        self.claimed: dict[Job, Claimed] = {}
        self.progress = SearchProgress(budget, trials.records())
        self._scratch = (trials.lease.path / f"cell-{n}" for n in itertools.count())

    def run(self) -> None:
        """Search until there is nothing left to try, here or in another process.

        Interrupted, it gives its trials back, so that they are run again another time.
        """
        self.observer.on_begin(self.progress)
        try:
            while self._start_all() or self.trials.others_run():
                self._listen()
                self._look_at_the_clock()
        finally:
            for claimed in self.claimed.values():
                self.trials.release(claimed)

    def _listen(self) -> None:
        """Take in what happens until a trial ends, which makes room, or for a moment."""
        until = time.monotonic() + POLL
        while (left := until - time.monotonic()) > 0:
            if not self.workers.running:
                time.sleep(left)
            elif (event := self.workers.wait(left)) is not None and self._handle(*event):
                return

    def _start_all(self) -> bool:
        """Start as many trials as there is room for; False if none run."""
        while self.workers.has_room:
            claimed = self.trials.claim(self.budget.choose)
            if claimed is None:
                break
            self._start(claimed)
        self.progress.look(self.trials.records())
        return bool(self.workers.running)

    def _start(self, claimed: Claimed) -> None:
        try:
            cell = claimed.search.cell(claimed.settings, claimed.number)
        except InputError as error:  # settings that do not go together
            self.trials.end(claimed, state.FAILED, note=str(error))
            return
        job = self.workers.start(
            cell, self.fingerprint, next(self._scratch), follow=True,
            threads=threads_of(self.workers.jobs),
        )  # fmt: skip
        self.claimed[job] = claimed
        self.progress.begin(cell)
        self.observer.on_start(cell)

    def _handle(self, job: Job, event: Mapping[str, Any] | Outcome) -> bool:
        """Take in an epoch or an outcome; True if the trial ended."""
        if isinstance(event, Outcome):
            self._end(job, event)
            return True
        epoch, val = event["epoch"], event["val"]
        if job.stopped is None and self.trials.report(self.claimed[job], epoch, val):
            job.stop(f"at epoch {epoch}, with validation {rounded(event['best'])}")
        return False

    def _end(self, job: Job, outcome: Outcome) -> None:
        claimed, score = self.claimed[job], outcome.score
        assert outcome.seconds is not None
        told: dict[str, Any] = {"seconds": outcome.seconds, "note": outcome.error or ""}
        if outcome.status == FINISHED and score is not None:
            ended = state.COMPLETE
            told |= {
                "val": score.val, "epochs": score.epochs, "best_epoch": score.best_epoch,
                "peak_bytes": score.peak_bytes, "metric": score.metric,
                "note": outcome.warning or "",
            }  # fmt: skip
        else:
            ended = state.STOPPED if job.stopped is not None else state.FAILED
            told |= {"undefined": outcome.status == UNDEFINED}
            told |= {"epochs": claimed.curve[-1][0] if claimed.curve else None}
        self.trials.end(claimed, ended, **told)
        del self.claimed[job]
        left = [running.cell for running in self.claimed]
        self.progress.running = left[-1] if left else None
        self.progress.num_here += 1
        self.progress.look(self.trials.records())
        self.observer.on_end(job.cell, outcome)

    def _look_at_the_clock(self) -> None:
        """Stop what runs when the search is over; the defaults are trained to their end."""
        left = self.budget.seconds_left(self.progress.records)
        if left is not None and left <= 0:
            for job, claimed in self.claimed.items():
                if not claimed.is_default:
                    job.stop("the time for the search was over")
