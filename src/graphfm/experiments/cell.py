"""One training of an experiment, and the rows that several of them make up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphfm.experiments.outcome import FAILED, UNDEFINED, Outcome
from graphfm.runs.devices import kind_of
from graphfm.runs.earlier import updated
from graphfm.runs.run import Run
from graphfm.training.callbacks import Score
from graphfm.training.settings import Training

SCORE = "score"  # the measure of a plain training
VALIDATION = "validation"  # of a training whose process never sees the test nodes


@dataclass(frozen=True)
class Cell:
    """A settled run, its name for people, and what is measured beside or instead of the score."""

    run: Run
    label: str
    measure: str = SCORE

    @property
    def key(self) -> str:
        """What tells this cell from all others in its folder."""
        return key_of(self.run.to_json(), self.measure, self.run.digests())

    @property
    def kind(self) -> str:
        """The key without the seed: cells of one kind take about as long and are defined alike."""
        record = self.run.to_json()
        seedless = {**record, "training": {**record["training"], "seed": None}}
        return key_of(seedless, self.measure, self.run.digests())


def key_of(
    run: Mapping[str, Any], measure: str = SCORE, digests: Mapping[str, str] | None = None
) -> str:
    """Every setting of a run, and the hash of the user's own code, as one string.

    What an older version did not have or wrote in another form counts as `Run.from_json` reads it,
    and an absent field as None, so that folders of older versions can be continued. The number of a
    GPU is no part of it.
    """
    run = updated(run)
    training = {**asdict(Training()), **run["training"]}
    given = {name: value for name, value in run.items() if value is not None}
    given["device"] = kind_of(given["device"])
    return json.dumps([measure, {**given, "training": training}, digests or {}], sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class PlannedRow:
    """A row of a table before it is filled: one cell per seed, or the reason why there is none."""

    cells: tuple[Cell, ...] = ()
    refusal: str | None = None

    def ended(self, outcomes: Mapping[str, Outcome]) -> list[Outcome]:
        """The outcomes of the cells that have one."""
        return [outcomes[cell.key] for cell in self.cells if cell.key in outcomes]

    def finished(self, outcomes: Mapping[str, Outcome]) -> dict[int, Outcome]:
        """The outcomes that have a score, by seed."""
        by_seed = {cell.run.training.seed: outcomes.get(cell.key) for cell in self.cells}
        return {
            seed: outcome
            for seed, outcome in by_seed.items()
            if outcome is not None and outcome.score is not None
        }

    def scores(self, outcomes: Mapping[str, Outcome]) -> list[Score]:
        """The scores of the cells that finished."""
        return [outcome.score for outcome in self.ended(outcomes) if outcome.score is not None]

    def num_failed(self, outcomes: Mapping[str, Outcome]) -> int:
        """How many cells failed; a method that is not defined has not failed."""
        return sum(outcome.status == FAILED for outcome in self.ended(outcomes))

    def note(self, outcomes: Mapping[str, Outcome]) -> str:
        """What a reader must know: why numbers are missing, else the first warning."""
        if self.refusal is not None:
            return f"not run: {self.refusal}"
        ended = self.ended(outcomes)
        for outcome in ended:
            if outcome.status == UNDEFINED:
                return f"not defined: {outcome.error}"
        failed = [outcome.error for outcome in ended if outcome.status == FAILED]
        if failed:
            return f"{len(failed)} of {len(self.cells)} failed: {failed[0]}"
        return next((outcome.warning for outcome in ended if outcome.warning), "")


def in_turns(rows: Sequence[PlannedRow]) -> list[Cell]:
    """The cells in the order to run them: every row once before any row a second time."""
    filled = [row.cells for row in rows if row.cells]
    return [cell for of_one_seed in zip(*filled, strict=True) for cell in of_one_seed]
