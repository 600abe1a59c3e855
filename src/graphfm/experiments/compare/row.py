"""A row of the table: one method over all seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphfm.experiments.cell import PlannedRow
from graphfm.experiments.compare.sweep import Value, as_words
from graphfm.experiments.outcome import Outcome, deviation, mean, tests_of
from graphfm.runs.run import Run
from graphfm.training.callbacks import Score

MEANS = (
    "val", "seconds_to_best", "seconds_per_epoch", "peak_bytes", "nodes_per_step",
    "edges_per_step", "epochs",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Entry(PlannedRow):
    """One method with one value of the sweep, before it is trained."""

    method: str
    backbone: str
    value: Value | None  # None where nothing is swept, or the method does not take it


@dataclass(frozen=True, kw_only=True)
class Row:
    """The scores of the seeds that finished, and what became of the others."""

    method: str
    backbone: str
    value: Value | None
    scores: tuple[Score, ...]
    num_failed: int = 0
    note: str = ""
    settings: str = ""  # all in which this row differs from the shared settings

    @classmethod
    def make(cls, entry: Entry, outcomes: Mapping[str, Outcome], shared: Run) -> Row:
        """The row of an entry, as far as its cells have outcomes."""
        return cls(
            method=entry.method,
            backbone=entry.backbone,
            value=entry.value,
            scores=tuple(entry.scores(outcomes)),
            num_failed=entry.num_failed(outcomes),
            note=entry.note(outcomes),
            settings=_differences(entry.cells[0].run, shared) if entry.cells else "",
        )

    @property
    def tests(self) -> list[float]:
        """One per seed; none where the graph has no test nodes."""
        return tests_of(self.scores)

    @property
    def test(self) -> float | None:
        return mean(self.tests)

    @property
    def test_std(self) -> float | None:
        return deviation(self.tests)

    @property
    def score(self) -> float | None:
        """What pictures show: the test score, or that of validation where there is no other."""
        return self.mean("val") if self.test is None else self.test

    @property
    def score_std(self) -> float | None:
        return deviation([s.val for s in self.scores]) if self.test is None else self.test_std

    def mean(self, name: str) -> float | None:
        """The mean over seeds of one field of `Score`."""
        return mean([getattr(score, name) for score in self.scores])

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


def _differences(run: Run, shared: Run) -> str:
    """Network, training and method settings of `run` that are not those of the whole table."""
    network = {} if run.backbone == shared.backbone else {"network": run.backbone}
    network |= _changed(run.backbone_settings, shared.backbone_settings)
    training = _changed(vars(run.training), {**vars(shared.training), "seed": run.training.seed})
    shown = {**network, **training, **run.method_settings}
    return ", ".join(f"{name} {as_words(value)}" for name, value in shown.items())


def _changed(here: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    unknown = object()
    return {name: value for name, value in here.items() if value != there.get(name, unknown)}
