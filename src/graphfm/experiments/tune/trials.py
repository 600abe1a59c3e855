"""The trials of all methods in one Optuna journal, which several processes may share.

The only module that imports Optuna. A trial is claimed under a lock, so that no two processes
count the same one; a trial whose process has died is marked as failed and queued again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from graphfm.experiments.tune.lease import WORKERS, Lease
from graphfm.experiments.tune.plan import Search
from graphfm.experiments.tune.record import COMPLETE, FAILED, RUNNING, STOPPED, TrialRecord
from graphfm.experiments.tune.space import Choice, Dimension, rounded
from graphfm.metrics.names import AUTO, gain

JOURNAL = "trials.journal"
GRACE, REDUCTION = 5, 3  # the first look is at a fifth of the epochs; a third goes on from each
RANDOM_FIRST = 5  # trials of a method before the sampler learns from them
STATES = {COMPLETE: TrialState.COMPLETE, STOPPED: TrialState.PRUNED, FAILED: TrialState.FAIL}
NAMES = {state: name for name, state in STATES.items()} | {TrialState.RUNNING: RUNNING}
Choose = Callable[[Sequence[TrialRecord]], Search | None]


@dataclass(eq=False)
class Claimed:
    """A trial that this process runs."""

    search: Search
    trial: optuna.trial.Trial
    is_default: bool
    curve: list[tuple[int, float]] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.trial.number + 1

    @property
    def settings(self) -> dict[str, Any]:
        return rounded(self.trial.params)

    @property
    def val(self) -> float | None:
        return max((val for _, val in self.curve), key=self.gain, default=None)

    @property
    def metric(self) -> str:
        return self.search.run.training.metric

    def gain(self, val: float) -> float:
        """A validation score with the sign that makes higher better, as Optuna is told it."""
        return gain(self.metric, val)


class Trials:
    """Claims trials, hears of their epochs, and keeps how they ended."""

    def __init__(
        self, folder: Path, searches: Sequence[Search], lease: Lease, *, jobs: int
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # its lines are not for our users
        self.lease, self.jobs = lease, jobs
        self._by_method = {search.method: search for search in searches}
        journal, lock = folder / JOURNAL, _FileLock(str(folder / WORKERS / JOURNAL))
        with lease.alone():
            _mend(journal, lock)
            storage = JournalStorage(JournalFileBackend(str(journal), lock))
            self._studies = {search.method: self._study(storage, search) for search in searches}

    def _study(self, storage: JournalStorage, search: Search) -> optuna.Study:
        pruner = optuna.pruners.SuccessiveHalvingPruner(
            min_resource=-(-search.epochs // GRACE), reduction_factor=REDUCTION
        )
        study = optuna.create_study(
            storage=storage, study_name=search.name, direction="maximize", load_if_exists=True,
            pruner=pruner,
        )  # fmt: skip
        if not study.get_trials(deepcopy=False):
            study.enqueue_trial(search.defaults, user_attrs={"defaults": True})
        return study

    def claim(self, choose: Choose) -> Claimed | None:
        """Take the next trial of the method that `choose` names, for this process alone."""
        with self.lease.alone():
            self._queue_lost_ones_again()
            search = choose(self.records())
            if search is None:
                return None
            study = self._studies[search.method]
            seed = len(study.get_trials(deepcopy=False))  # others never draw the same numbers
            study.sampler = optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=RANDOM_FIRST, constant_liar=True
            )
            space = {name: _distribution(dim) for name, dim in search.space.items()}
            trial = study.ask(space)
            trial.set_user_attr("jobs", self.jobs)
            trial.set_user_attr("worker", self.lease.name)
        return Claimed(search, trial, bool(trial.user_attrs.get("defaults")))

    def report(self, claimed: Claimed, epoch: int, val: float) -> bool:
        """Keep the validation score of an epoch; True if the training should stop here.

        The best score so far is compared, since single epochs are noisy. The defaults are compared
        like all others, and trained to the end however they do.
        """
        claimed.curve.append((epoch, val))
        best = claimed.val
        assert best is not None
        claimed.trial.report(claimed.gain(best), epoch)
        behind = claimed.trial.should_prune()  # which also keeps the score for others to meet
        return behind and not claimed.is_default and epoch < claimed.search.epochs

    def end(self, claimed: Claimed, state: str, **result: Any) -> None:
        """Keep how a trial ended."""
        known = {"metric": claimed.metric, "val": claimed.val, "curve": claimed.curve}
        record = {"state": state, **known, **result}
        claimed.trial.set_user_attr("result", record)
        self._tell(self._studies[claimed.search.method], claimed.trial.number, record)

    def release(self, claimed: Claimed) -> None:
        """Give back a trial that was interrupted: it is run again another time."""
        with self.lease.alone():
            study = self._studies[claimed.search.method]
            self._again(study, claimed.search, study.get_trials()[claimed.trial.number])

    def records(self) -> list[TrialRecord]:
        """Every trial that counts, method by method: not those that wait or were lost."""
        return [
            record
            for method, study in self._studies.items()
            for trial in study.get_trials(deepcopy=False)
            if (record := self._record(method, trial)) is not None
        ]

    def others_run(self) -> bool:
        """True if another process still runs a trial, or has left one behind."""
        running = (
            trial
            for study in self._studies.values()
            for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        )
        return any(trial.user_attrs.get("worker") != self.lease.name for trial in running)

    def _record(self, method: str, trial: FrozenTrial) -> TrialRecord | None:
        result: Mapping[str, Any] = trial.user_attrs.get("result", {})
        if trial.state == TrialState.WAITING or (trial.state == TrialState.FAIL and not result):
            return None
        metric = self._by_method[method].run.training.metric
        told: dict[str, Any] = {"val": None, "metric": metric}
        told |= {n: v for n, v in result.items() if n != "state"}
        if trial.state == TrialState.RUNNING:
            values, began = trial.intermediate_values.values(), trial.datetime_start
            best = max(values, default=None)
            told["val"] = None if best is None else gain(told["metric"], best)  # its own inverse
            told["seconds"] = 0.0 if began is None else (datetime.now() - began).total_seconds()
        return TrialRecord(
            method=method,
            number=trial.number + 1,
            state=NAMES[trial.state],
            settings=rounded(trial.params),
            is_default=bool(trial.user_attrs.get("defaults")),
            jobs=trial.user_attrs.get("jobs", self.jobs),
            **told,
        )

    def _queue_lost_ones_again(self) -> None:
        for method, study in self._studies.items():
            for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if not self.lease.is_alive(trial.user_attrs.get("worker")):
                    self._again(study, self._by_method[method], trial)

    def _again(self, study: optuna.Study, search: Search, trial: FrozenTrial) -> None:
        """Mark a lost trial as failed and queue its settings, unless it had just ended."""
        if result := trial.user_attrs.get("result"):
            self._tell(study, trial.number, result)
            return
        study.tell(trial.number, state=TrialState.FAIL)
        defaults = bool(trial.user_attrs.get("defaults"))
        settings = search.defaults if defaults else trial.params
        study.enqueue_trial(settings, user_attrs={"defaults": True} if defaults else None)

    def _tell(self, study: optuna.Study, number: int, result: Mapping[str, Any]) -> None:
        value = None
        if result["state"] == COMPLETE:
            value = gain(result.get("metric", AUTO), result["val"])
        study.tell(number, value, state=STATES[result["state"]])


class _FileLock(JournalFileOpenLock):
    """A lock that the system releases when its process ends; Optuna's own would stay for 30 s."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}.file")  # where it is needed, its file is another one
        self._place, self._handle = f"{path}.lock", -1

    def acquire(self) -> bool:
        try:
            import fcntl
        except ImportError:  # Windows has no fcntl
            return super().acquire()
        self._handle = os.open(self._place, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            self._close()
            return super().acquire()
        return True

    def release(self) -> None:
        if self._handle < 0:
            super().release()
        else:
            self._close()

    def _close(self) -> None:
        os.close(self._handle)
        self._handle = -1


def _mend(journal: Path, lock: _FileLock) -> None:
    """Remove a last line without its end: its process died while writing it."""
    lock.acquire()
    try:
        if journal.exists() and (content := journal.read_bytes()) and not content.endswith(b"\n"):
            os.truncate(journal, content.rfind(b"\n") + 1)
    finally:
        lock.release()


def _distribution(dimension: Dimension) -> BaseDistribution:
    if isinstance(dimension, Choice):
        return CategoricalDistribution(dimension.values)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
