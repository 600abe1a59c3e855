"""A row of the table: one method over all seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from graphfm.comparison.entry import Entry
from graphfm.comparison.outcome import FAILED, UNDEFINED, Outcome
from graphfm.comparison.sweep import Value
from graphfm.training.watcher import Score

MEANS = (
    "val", "seconds_to_best", "seconds_per_epoch", "peak_bytes", "nodes_per_step",
    "edges_per_step", "epochs",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Row:
    """The scores of the seeds that finished, and what became of the others."""

    method: str
    backbone: str
    value: Value | None
    scores: tuple[Score, ...]
    num_failed: int = 0
    note: str = ""

    @classmethod
    def make(cls, entry: Entry, outcomes: Mapping[str, Outcome]) -> Row:
        """The row of an entry, as far as its cells have outcomes."""
        ended = [outcomes[cell.key] for cell in entry.cells if cell.key in outcomes]
        undefined = [o.error or "" for o in ended if o.status == UNDEFINED]
        failed = [o.error or "" for o in ended if o.status == FAILED]
        if entry.refusal is not None:
            undefined.append(entry.refusal)
        note = ""
        if failed:
            note = f"{len(failed)} of {len(entry.cells)} failed: {failed[0]}"
        if undefined:
            note = f"not defined: {undefined[0]}"
        return cls(
            method=entry.method,
            backbone=entry.backbone,
            value=entry.value,
            scores=tuple(o.score for o in ended if o.score is not None),
            num_failed=len(failed),
            note=note,
        )

    @property
    def tests(self) -> list[float]:
        """One per seed; none where the graph has no test nodes."""
        return [score.test for score in self.scores if score.test is not None]

    @property
    def test(self) -> float | None:
        return _mean(self.tests)

    @property
    def test_std(self) -> float | None:
        return _std(self.tests)

    @property
    def score(self) -> float | None:
        """What pictures show: the test score, or where there is none that of validation."""
        return self.mean("val") if self.test is None else self.test

    @property
    def score_std(self) -> float | None:
        return _std([s.val for s in self.scores]) if self.test is None else self.test_std

    def mean(self, name: str) -> float | None:
        """Of a number of the score, over seeds."""
        return _mean([getattr(score, name) for score in self.scores])

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "backbone": self.backbone,
            "value": self.value,
            "seeds": len(self.scores),
            "test": self.test,
            "test_std": self.test_std,
            **{name: self.mean(name) for name in MEANS},
            "tests": self.tests,
            "failed": self.num_failed,
            "note": self.note,
        }


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _std(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None
