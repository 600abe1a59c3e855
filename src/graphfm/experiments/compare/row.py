"""A row of the table: one method over all seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from graphfm.experiments.compare.entry import Entry
from graphfm.experiments.compare.sweep import Value
from graphfm.experiments.outcome import FAILED, UNDEFINED, Outcome
from graphfm.runs.run import backbone_of
from graphfm.training.callbacks import Score

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
    settings: str = ""  # of the method, and of its network where that is its own

    @classmethod
    def make(cls, entry: Entry, outcomes: Mapping[str, Outcome]) -> Row:
        """The row of an entry, as far as its cells have outcomes."""
        ended = [outcomes[cell.key] for cell in entry.cells if cell.key in outcomes]
        undefined = [o.error or "" for o in ended if o.status == UNDEFINED]
        failed = [o.error or "" for o in ended if o.status == FAILED]
        if entry.refusal is not None:
            undefined.append(entry.refusal)
        note = next((o.warning for o in ended if o.warning), "")
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
            settings=_settings(entry),
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
            "settings": self.settings,
        }


def _settings(entry: Entry) -> str:
    """What the method was told, and with which network if that was not the one of the table."""
    if not entry.cells:
        return ""
    run = entry.cells[0].run
    shown = [f"network {run.backbone}"] if backbone_of(run.method) else []
    for name, value in run.method_settings.items():
        values = value if isinstance(value, tuple) else (value,)
        words = {True: "yes", False: "no"}
        text = ",".join(words[v] if isinstance(v, bool) else str(v) for v in values)
        shown.append(f"{name} {text}")
    return ", ".join(shown)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _std(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None
