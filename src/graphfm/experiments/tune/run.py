"""The whole of a search: trials, the final trainings with the best settings, and the report."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from graphfm.data.datasets import known_size, load
from graphfm.data.graph.size import GraphSize
from graphfm.errors import InputError
from graphfm.experiments.cell import Cell
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.report import describe, write_pictures
from graphfm.experiments.outcome import Outcome
from graphfm.experiments.progress import Progress, duration
from graphfm.experiments.runner import Observer
from graphfm.experiments.store import check_place, keep_settings
from graphfm.experiments.tables import Table
from graphfm.experiments.tune.budget import Budget, choose_jobs
from graphfm.experiments.tune.final import run_final
from graphfm.experiments.tune.lease import WORKERS, Lease
from graphfm.experiments.tune.pace import KEY, stored_pace
from graphfm.experiments.tune.plan import TunePlan
from graphfm.experiments.tune.probe import choose_pace, measure
from graphfm.experiments.tune.record import Records, counts
from graphfm.experiments.tune.report import (
    at_a_time,
    draw_trials_picture,
    final_table,
    search_table,
    write_final,
    write_trials,
)
from graphfm.experiments.tune.row import TunedRow, chosen_settings, tuned_rows
from graphfm.experiments.tune.search import Searcher
from graphfm.experiments.workers import Train, Workers
from graphfm.files import locked
from graphfm.runs.folder import as_file_name
from graphfm.runs.memory_plan import MemoryPlan, plan_for
from graphfm.runs.run import pick_device
from graphfm.training.setup import check_trainable

if TYPE_CHECKING:  # it imports Optuna, which may be missing
    from graphfm.experiments.tune.trials import Trials

SETTINGS = "tuning.json"
SLACK = 0.1  # of the minutes; being late by more is said
EVERY = 5.0  # seconds between two writings of the table of trials


def tune(
    plan: TunePlan,
    out: str | Path | None = None,
    *,
    observer: Observer | None = None,
    train: Train | None = None,
) -> list[TunedRow]:
    """Search, train the best settings of each method with all seeds, and return the table's rows.

    The folder `out` is continued: trials and trainings that it holds are not run again.
    """
    return Tuning(plan, out, observer=observer, train=train).run()


class Tuning:
    """A search in a folder, and how far it is."""

    def __init__(
        self,
        plan: TunePlan,
        out: str | Path | None = None,
        *,
        observer: Observer | None = None,
        train: Train | None = None,
    ) -> None:
        require_optuna()
        self.plan, self.path, self.train = plan, Path(out or default_path(plan)), train
        self.observer = observer or Observer()
        self.records: Records = ()
        self.final: Plan | None = None
        self.rows: list[TunedRow] = []
        self.jobs = plan.jobs or 1

    def table(self) -> Table:
        """The search while it goes on, then the final table."""
        if not self.rows:
            return search_table(self.plan, self.records)
        return final_table(self.plan, self.final, self.rows, self.records, self.jobs)

    def run(self) -> list[TunedRow]:
        """Do all that is missing."""
        started = time.monotonic()
        settings = self._prepare()
        with Lease.take(self.path) as lease, Workers(self.jobs, self.train) as workers:
            waiting = f"another process times a few epochs for {self.path}; waiting for it"
            with locked(self.path / WORKERS / "epochs.lock", waiting):
                settings = self._settle_epochs(lease, workers, settings, started)
            self._search(lease, workers, settings["graph"]["fingerprint"], started)
            waiting = f"another process runs the final trainings of {self.path}; waiting for it"
            with locked(self.path / WORKERS / "final.lock", waiting):
                self._finish(lease, workers, settings)
        return self.rows

    def _prepare(self) -> dict[str, Any]:
        """Look at the graph, before anything is written; all that trials must have in common."""
        base = self.plan.base
        device = pick_device(base.shared.device)
        known = known_size(base.shared.dataset, device)
        if known is not None:  # otherwise only the graph itself tells how large it is
            plan_for(base.shared, known, device).check_graph(base.shared.dataset)
        graph = load(base.shared.dataset, device=device)
        for run in base.runs:
            check_trainable(graph, run.training)
        check_place(self.path, SETTINGS)
        settings = base.settings(graph)
        self.jobs = self.plan.jobs or choose_jobs(self._memory(GraphSize.of(graph)), device)
        del graph  # its memory is for the trainings
        if device.type == "cuda":
            torch.cuda.empty_cache()
        self.observer.on_message(f"{describe(base)}, {at_a_time(self.jobs)}")
        return settings

    def _settle_epochs(
        self, lease: Lease, workers: Workers, settings: dict[str, Any], started: float
    ) -> dict[str, Any]:
        """Choose the epochs of a new folder, or take those it has; keep all settings in it."""
        file, plan = self.path / SETTINGS, self.plan
        pace = None if plan.gives_epochs else stored_pace(file)
        if pace is not None:
            said = pace.kept_in_words(plan.minutes)
        elif plan.chooses_epochs and not file.exists():
            self.observer.on_message("timing a few epochs of each method")
            costs = measure(plan.searches, workers, settings["graph"]["fingerprint"], lease)
            pace = choose_pace(plan, costs, self.jobs, time.monotonic() - started)
            said = pace.in_words()
        if pace is not None:
            self.plan = plan.paced(pace)
            settings = {**settings, KEY: pace.to_json()}
            if said:
                self.observer.on_message(said)
        with lease.alone():
            keep_settings(file, settings, self.plan.asked(), self.plan.base.defaults())
        return settings

    def _memory(self, graph: GraphSize) -> list[MemoryPlan]:
        plans = list[MemoryPlan]()
        for search in self.plan.searches:
            with suppress(InputError):  # the method is not defined here, as its trial will say
                plans.append(plan_for(search.run, graph, pick_device(search.run.device)))
        return plans

    def _search(self, lease: Lease, workers: Workers, fingerprint: str, started: float) -> None:
        from graphfm.experiments.tune.trials import Trials

        trials = Trials(self.path, self.plan.searches, lease, jobs=self.jobs)
        keeper = _Keeper(self, trials)
        budget = Budget(self.plan, self.jobs, started)
        try:
            Searcher(trials, budget, workers, fingerprint, keeper).run()
        finally:
            keeper.write()
            draw_trials_picture(self.path, self.plan, self.records)
        self.observer.on_message(f"the search is over after {counts(self.records)}")
        if (late := budget.overrun(self.records)) > SLACK * 60 * (self.plan.minutes or 0):
            self.observer.on_message(
                f"the defaults and the final trainings take longer than {self.plan.minutes:g} "
                f"minutes, by about {duration(late)}: fewer methods, seeds or epochs would fit"
            )

    def _finish(self, lease: Lease, workers: Workers, settings: Mapping[str, Any]) -> None:
        """Train the best settings of each method with every seed, and write the tables."""
        chosen = chosen_settings(self.plan, self.records)
        self.final = self.plan.final(chosen) if chosen else None
        self._report({})
        if self.final is None:
            return
        try:
            final = run_final(self.final, self.path, settings, workers, lease, self.observer)
            for outcomes in final:
                self._report(outcomes)
        finally:
            write_pictures(self.path, self.final, self.rows)

    def _report(self, outcomes: Mapping[str, Outcome]) -> None:
        self.rows = tuned_rows(self.plan, self.final, self.records, outcomes)
        write_final(self.path, self.plan, self.final, self.rows, self.table())


class _Keeper(Observer):
    """Passes on what happens, and writes the table of trials now and then."""

    def __init__(self, tuning: Tuning, trials: Trials) -> None:
        self.tuning, self.trials = tuning, trials
        self._written = 0.0

    def on_begin(self, progress: Progress) -> None:
        self.tuning.observer.on_begin(progress)

    def on_start(self, cell: Cell) -> None:
        self.tuning.observer.on_start(cell)

    def on_end(self, cell: Cell, outcome: Outcome) -> None:
        self.tuning.records = self.trials.records()
        self.tuning.observer.on_end(cell, outcome)
        if time.monotonic() - self._written > EVERY:
            self.write()

    def write(self) -> None:
        self._written = time.monotonic()
        self.tuning.records = self.trials.records()
        write_trials(self.tuning.path, self.tuning.plan, self.tuning.records)


def default_path(plan: TunePlan) -> Path:
    """runs/tune-debian-sage"""
    shared = plan.base.shared
    return Path("runs") / "-".join(map(as_file_name, ("tune", shared.dataset, shared.backbone)))


def require_optuna() -> None:
    """Refuse to search without Optuna."""
    if importlib.util.find_spec("optuna") is None:
        raise InputError("the search needs Optuna; install it: pip install 'graphfm[tune]'")
