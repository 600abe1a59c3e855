"""Decides what is searched for each method, and which trainings follow the search."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphfm.errors import InputError
from graphfm.experiments.cell import VALIDATION, Cell
from graphfm.experiments.compare.plan import Plan, choose_methods
from graphfm.experiments.tune.pace import Pace
from graphfm.experiments.tune.space import (
    Dimension,
    rounded,
    settings_of,
    size_of,
    space_of,
    with_settings,
)
from graphfm.runs.named import BackboneLike, MethodLike
from graphfm.runs.run import Run

SEED = 1000  # of every trial: not among the seeds of the final trainings, which are 0 to 999
PATIENCE = 20  # less than `train` has: trainings of a search are many, and often shorter


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """One method: its run with the settings that are fixed, and the space of the others."""

    method: str
    run: Run
    space: Mapping[str, Dimension]

    @property
    def epochs(self) -> int:
        """The most epochs of one training."""
        return self.run.training.epochs

    @property
    def defaults(self) -> dict[str, Any]:
        """The values that the method has by itself, which are tried first."""
        known = settings_of(self.run)
        return {name: known[name] for name in self.space}

    @property
    def name(self) -> str:
        """Names the method, and all that its trials have in common: others are another search."""
        common = [
            self.run.to_json(),
            self.run.digests(),
            {n: str(d) for n, d in self.space.items()},
        ]
        text = json.dumps(common, sort_keys=True)
        return f"{self.method} {hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def cell(self, settings: Mapping[str, Any], number: int) -> Cell:
        """One trial: a training whose process has no test nodes."""
        run = with_settings(self.run, rounded(settings))
        return Cell(run, f"{self.method}, trial {number}", VALIDATION)


@dataclass(frozen=True, kw_only=True)
class TunePlan:
    """The methods to search, the budget, and how to make the final comparison."""

    base: Plan  # every method with its defaults
    searches: tuple[Search, ...]
    options: Mapping[str, Any]  # of `Plan.make`, without the methods' own settings
    minutes: float | None
    trials: int | None  # of each method
    jobs: int | None  # trainings at a time; None leaves it to the memory and the cores
    pace: Pace | None = None  # how the epochs were chosen, if they were

    @classmethod
    def make(
        cls,
        *,
        dataset: str = "debian",
        methods: str | Sequence[MethodLike] = "all",
        backbone: BackboneLike | None = None,
        minutes: float | None = None,
        trials: int | None = None,
        seeds: int = 3,
        budget_epochs: int | None = None,
        patience: int | None = PATIENCE,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        jobs: int | None = None,
        device: str = "auto",
        **fixed: Any,
    ) -> TunePlan:
        """Make a plan from names and flat options; what is `fixed` or `own` is not searched."""
        _check_budget(minutes, trials, jobs)
        given = {name: value for name, value in fixed.items() if value is not None}
        options = {
            "dataset": dataset, "methods": choose_methods(methods), "backbone": backbone,
            "seeds": seeds, "budget_epochs": budget_epochs, "patience": patience, "device": device,
            **given,
        }  # fmt: skip
        base = Plan.make(**options, own=own)
        return cls(
            base=base, searches=_searches(base, given), options=options, minutes=minutes,
            trials=trials, jobs=jobs,
        )  # fmt: skip

    @property
    def chooses_epochs(self) -> bool:
        """True if trainings may be made shorter, so that they fit into the minutes."""
        return self.minutes is not None and self.trials is None and not self.gives_epochs

    @property
    def gives_epochs(self) -> bool:
        return self.options["budget_epochs"] is not None

    def epochs_at(self, pace: Pace) -> dict[str, int]:
        """By method; a number that was given to a method alone stays."""
        return {
            search.method: search.epochs
            if "epochs" in self.base.own.get(search.method, {})
            else pace.epochs(search.epochs)
            for search in self.searches
        }

    def paced(self, pace: Pace | None) -> TunePlan:
        """The same plan with the epochs of this pace, for trials and final trainings alike."""
        if pace is None or pace.factor == 1:
            return replace(self, pace=pace)
        own = {name: dict(settings) for name, settings in self.base.own.items()}
        for method, epochs in self.epochs_at(pace).items():
            own.setdefault(method, {})["epochs"] = epochs
        base = Plan.make(**self.options, own=own)
        return replace(self, base=base, searches=_searches(base, self.options), pace=pace)

    def most(self, search: Search) -> float:
        """The most trials of a method: there is no use in trying the same settings twice."""
        return min(math.inf if self.trials is None else self.trials, size_of(search.space))

    def final(self, chosen: Mapping[str, Mapping[str, Any]]) -> Plan:
        """The comparison of these methods with these settings."""
        methods = [method for method in self.options["methods"] if method.name in chosen]
        own = {
            name: {**self.base.own.get(name, {}), **settings} for name, settings in chosen.items()
        }
        own = {name: settings for name, settings in own.items() if settings}
        return Plan.make(**{**self.options, "methods": methods, "own": own})

    def asked(self) -> dict[str, Any]:
        """What may change from one start to the next."""
        return {**self.base.asked(), "minutes": self.minutes, "trials": self.trials}


def _searches(base: Plan, fixed: Iterable[str]) -> tuple[Search, ...]:
    return tuple(
        _search(entry.cells[0].run, {*fixed, *base.own.get(entry.method, {})})
        for entry in base.entries
        if entry.cells
    )


def _search(run: Run, fixed: set[str]) -> Search:
    run = with_settings(run, {"seed": SEED})
    return Search(method=run.method, run=run, space=space_of(run, fixed))


def _check_budget(minutes: float | None, trials: int | None, jobs: int | None) -> None:
    if minutes is None and trials is None:
        raise InputError(
            "there is no budget; give minutes (for everything) or trials (of each method), or both"
        )
    if minutes is not None and not 0 < minutes < math.inf:
        raise InputError(f"minutes is {minutes}; expected a number above 0")
    for name, value in (("trials", trials), ("jobs", jobs)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; expected 1 or more")
