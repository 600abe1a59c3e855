"""A row of the final table: a method with its best settings, and how they were found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.row import Row
from graphfm.experiments.outcome import Outcome
from graphfm.experiments.tune.plan import TunePlan
from graphfm.experiments.tune.record import Records, best, gave_up, of


@dataclass(frozen=True, kw_only=True)
class TunedRow(Row):
    """A row of a comparison, with the trials behind it."""

    chosen: Mapping[str, Any] = field(default_factory=dict)  # of what was searched
    trials: int = 0
    trial_val: float | None = None  # of the best trial, whose seed is not among the final ones

    @property
    def found_nothing(self) -> bool:
        """True if no trial finished although the method is defined here."""
        return bool(self.trials) and not self.chosen and not self.note.startswith("not defined")

    @property
    def std(self) -> float | None:
        """The deviation of the score: of the test, or of validation where there is no test."""
        return self.score_std

    def to_json(self) -> dict[str, Any]:
        return {
            **super().to_json(),
            "std": self.std,
            "chosen": dict(self.chosen),
            "trials": self.trials,
            "trial_val": self.trial_val,
        }


def chosen_settings(plan: TunePlan, records: Records) -> dict[str, dict[str, Any]]:
    """By method, the settings of the best trial; without methods none of whose trials finished."""
    found = {search.method: best(of(search.method, records)) for search in plan.searches}
    return {method: dict(trial.settings) for method, trial in found.items() if trial is not None}


def tuned_rows(
    plan: TunePlan, final: Plan | None, records: Records, outcomes: Mapping[str, Outcome]
) -> list[TunedRow]:
    """A row for each method of the plan, in its order."""
    trained = {} if final is None else {row.method: row for row in final.rows(outcomes)}
    rows = []
    for entry in plan.base.entries:
        own = of(entry.method, records)
        row = trained.get(entry.method) or _without_scores(Row.make(entry, {}, {}), own)
        found = best(own)
        chosen = {} if found is None else found.settings
        told: dict[str, Any] = {**vars(row), "options": {**chosen, **row.options}}
        trial_val = None if found is None else found.val
        rows.append(TunedRow(**told, chosen=chosen, trials=len(own), trial_val=trial_val))
    return rows


def _without_scores(row: Row, trials: Records) -> Row:
    """The row of a method that has no final trainings, with the reason."""
    failed = next((trial.note for trial in trials if trial.note), "no trial has ended")
    note = gave_up(trials) or f"none of {len(trials)} trials finished: {failed}"
    return Row(**{**vars(row), "note": row.note or note})
