"""A row of the table: one method over all seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphfm.experiments.compare.entries import Entry
from graphfm.experiments.compare.sweep import Value, Values, as_words, in_words, only_value
from graphfm.experiments.curve import Curve
from graphfm.experiments.outcome import Outcome, deviation, mean, tests_of
from graphfm.experiments.paired import Paired
from graphfm.metrics.names import title
from graphfm.training.callbacks import Score

MEANS = (
    "val", "seconds_to_best", "seconds_per_epoch", "peak_bytes", "nodes_per_step",
    "edges_per_step", "epochs",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Difference(Paired):
    """How far the test scores of a row lie from those of the reference, seed by seed."""

    reference: str  # the name of that row


@dataclass(frozen=True, kw_only=True)
class Row:
    """The scores of the seeds that finished, and what became of the others."""

    method: str
    backbone: str
    values: Values = field(default_factory=dict)
    scores: tuple[Score, ...]
    seeds: tuple[int, ...]  # of the scores, in their order
    curves: tuple[Curve | None, ...] = ()  # likewise; None in folders of older versions
    num_failed: int = 0
    note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # in which this row differs
    is_best: bool = False  # of its method, on validation
    is_reference: bool = False  # best of all on validation
    difference: Difference | None = None  # from the reference; None for itself

    def __post_init__(self) -> None:
        assert len(self.seeds) == len(self.scores)

    @classmethod
    def make(cls, entry: Entry, outcomes: Mapping[str, Outcome], options: Mapping[str, Any]) -> Row:
        """The row of an entry, as far as its cells have outcomes."""
        finished = entry.finished(outcomes)
        return cls(
            method=entry.method,
            backbone=entry.backbone,
            values=entry.values,
            scores=tuple(out.score for out in finished.values() if out.score is not None),
            seeds=tuple(finished),
            curves=tuple(out.curve for out in finished.values()),
            num_failed=entry.num_failed(outcomes),
            note=entry.note(outcomes),
            options=options,
        )

    @property
    def name(self) -> str:
        """The method and the values of the swept options."""
        return in_words(self.method, self.values)

    @property
    def value(self) -> Value | None:
        """The value of the one swept option; None if there are none or several."""
        return only_value(self.values)

    @property
    def settings(self) -> str:
        """The options in which this row differs, as one line."""
        return settings_text(self.options)

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
    def tests_by_seed(self) -> dict[int, float]:
        found = zip(self.seeds, self.scores, strict=True)
        return {seed: score.test for seed, score in found if score.test is not None}

    @property
    def val(self) -> float | None:
        """The mean of the best validation scores, by which rows and values are chosen."""
        return self.mean("val")

    @property
    def gain(self) -> float:
        """The same with the sign that makes higher better; by it the best row is chosen."""
        return mean([score.gain for score in self.scores]) or 0.0

    @property
    def metric(self) -> str:
        """What the scores are, in words."""
        return title(self.scores[0].metric if self.scores else "micro-f1")

    @property
    def val_std(self) -> float | None:
        return deviation([score.val for score in self.scores])

    @property
    def score(self) -> float | None:
        """What pictures show: the test score, or that of validation where there is no other."""
        return self.val if self.test is None else self.test

    @property
    def score_std(self) -> float | None:
        return self.val_std if self.test is None else self.test_std

    def mean(self, name: str) -> float | None:
        """The mean over seeds of one field of `Score`."""
        return mean([getattr(score, name) for score in self.scores])

    def to_json(self) -> dict[str, Any]:
        scores = zip(self.seeds, self.scores, strict=True)
        return {
            "method": self.method,
            "backbone": self.backbone,
            "value": self.value,
            "values": dict(self.values),
            "seeds": len(self.scores),
            "metric": self.scores[0].metric if self.scores else None,
            "test": self.test,
            "test_std": self.test_std,
            **{name: self.mean(name) for name in MEANS},
            "val_std": self.val_std,
            "tests": self.tests,
            "scores": [{"seed": seed, "test": s.test, "val": s.val} for seed, s in scores],
            "is_best": self.is_best,
            "is_reference": self.is_reference,
            "difference": None if self.difference is None else asdict(self.difference),
            "failed": self.num_failed,
            "note": self.note,
            "settings": self.settings,
            "options": dict(self.options),
        }


def settings_text(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {as_words(value)}" for name, value in options.items())
