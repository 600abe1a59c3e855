"""A row of the final table: a method with its best settings, and how they were found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.row import Entry, Row
from graphfm.experiments.compare.sweep import as_words
from graphfm.experiments.outcome import Outcome, deviation
from graphfm.experiments.paired import Paired, paired
from graphfm.experiments.tune.plan import TunePlan
from graphfm.experiments.tune.record import Records, TrialRecord, best, gave_up, of


@dataclass(frozen=True, kw_only=True)
class TunedRow(Row):
    """A row of a comparison, with the trials behind it."""

    chosen: Mapping[str, Any] = field(default_factory=dict)  # of what was searched
    trials: int = 0
    trial_val: float | None = None  # of the best trial, whose seed is not among the final ones
    against: str | None = None  # the best method on validation; None for itself
    difference: Paired | None = None  # of the test scores to those of `against`, seed by seed

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
            "val_std": deviation([score.val for score in self.scores]),
            "chosen": dict(self.chosen),
            "trials": self.trials,
            "trial_val": self.trial_val,
            "against": self.against,
            "difference": None if self.difference is None else asdict(self.difference),
        }


def chosen_settings(plan: TunePlan, records: Records) -> dict[str, dict[str, Any]]:
    """By method, the settings of the best trial; without methods none of whose trials finished."""
    found = {search.method: best(of(search.method, records)) for search in plan.searches}
    return {method: dict(trial.settings) for method, trial in found.items() if trial is not None}


def tuned_rows(
    plan: TunePlan, final: Plan | None, records: Records, outcomes: Mapping[str, Outcome]
) -> list[TunedRow]:
    """A row for each method of the plan, in its order."""
    entries = {entry.method: entry for entry in (() if final is None else final.entries)}
    shared = plan.base.shared if final is None else final.shared
    rows = [
        _row(
            Row.make(entries.get(entry.method, entry), outcomes, shared),
            of(entry.method, records),
            entry.method in entries,
        )
        for entry in plan.base.entries
    ]
    return _with_differences(rows, entries, outcomes)


def _row(row: Row, trials: Records, is_final: bool) -> TunedRow:
    found: TrialRecord | None = best(trials)
    note = row.note
    if not is_final and not note:
        failed = next((trial.note for trial in trials if trial.note), "no trial has ended")
        note = gave_up(trials) or f"none of {len(trials)} trials finished: {failed}"
    chosen = {} if found is None else found.settings
    others = [part for part in row.settings.split(", ") if part.split(" ")[0] not in chosen]
    words = [
        *(f"{name} {as_words(value)}" for name, value in chosen.items()),
        *filter(None, others),
    ]
    return TunedRow(
        **{**vars(row), "note": note, "settings": ", ".join(words) if is_final else ""},
        chosen=chosen,
        trials=len(trials),
        trial_val=None if found is None else found.val,
    )


def _with_differences(
    rows: list[TunedRow], entries: Mapping[str, Entry], outcomes: Mapping[str, Outcome]
) -> list[TunedRow]:
    """Compare each row with the one that is best on validation."""
    scored = [row for row in rows if row.scores]
    if not scored:
        return rows
    first = max(scored, key=lambda row: row.mean("val") or 0.0)
    reference = _by_seed(entries[first.method], outcomes)
    found = []
    for row in rows:
        if row.scores and row is not first:
            difference = paired(_by_seed(entries[row.method], outcomes), reference)
            row = TunedRow(**{**vars(row), "against": first.method, "difference": difference})
        found.append(row)
    return found


def _by_seed(entry: Entry, outcomes: Mapping[str, Outcome]) -> dict[int, float]:
    """Test scores by seed; validation scores where there are no test nodes."""
    found = dict[int, float]()
    for cell in entry.cells:
        outcome = outcomes.get(cell.key)
        if outcome is not None and (score := outcome.score) is not None:
            found[cell.run.training.seed] = score.val if score.test is None else score.test
    return found
