"""How a cell ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from graphfm.memory import is_out_of_memory
from graphfm.metrics.names import rounded
from graphfm.training.callbacks import Score

FINISHED, UNDEFINED, FAILED = "finished", "not defined", "failed"
STOPPED = "stopped"  # ended by us before its end, because it would not win
BROKEN = "broken"  # the run could not even be built: an error of the command, never kept
NONE = "-"  # a number that does not exist


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A score or another measurement, or the reason why there is none."""

    status: str
    score: Score | None = None
    error: str | None = None  # one line
    details: str | None = None  # the end of what the process printed
    warning: str | None = None  # what one should know about a training that finished
    measured: Mapping[str, Any] | None = None  # beside or instead of the score, as JSON
    seconds: float | None = None  # of the whole cell, its process included
    curve: Mapping[str, Sequence[Any]] | None = None  # epochs, also of a training that failed

    def __post_init__(self) -> None:
        assert self.status in (FINISHED, UNDEFINED, FAILED, BROKEN, STOPPED)
        has_result = self.score is not None or self.measured is not None
        assert (self.status == FINISHED) == has_result

    @property
    def settled(self) -> bool:
        """True if the cell would end the same when run again."""
        return self.status in (FINISHED, UNDEFINED)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Outcome:
        """The inverse of `to_json`; fields that an older version did not write are None."""
        score = record["score"]
        return cls(
            status=record["status"],
            score=None if score is None else Score(**score | {"staleness": _layers(score)}),
            error=record["error"],
            details=record["details"],
            warning=record.get("warning"),
            measured=record.get("measured"),
            seconds=record.get("seconds"),
            curve=record.get("curve"),
        )


def summary(outcome: Outcome) -> str:
    """The outcome of a training as one line."""
    score = outcome.score
    if score is None:
        return f"{outcome.status}: {outcome.error}"
    test = "no test nodes" if score.test is None else f"test {rounded(score.test)}"
    return (
        f"{test}, validation {rounded(score.val)} after {score.seconds_to_best:.3g} s, "
        f"{score.peak_bytes / 2**20:,.0f} MiB"
    )


def reason(error: BaseException) -> str:
    """An error as one line. Errors of this package speak for themselves; others need their name."""
    if is_out_of_memory(error):
        return "there is not enough memory"
    kind, text = type(error), " ".join(str(error).split())
    if text and kind.__module__.startswith("graphfm."):
        return text
    return f"{kind.__name__}: {text}" if text else kind.__name__


def tests_of(scores: Sequence[Score]) -> list[float]:
    """The test scores; none where the graph has no test nodes."""
    return [score.test for score in scores if score.test is not None]


def mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    """The standard deviation of a sample; one value has none."""
    return stdev(values) if len(values) > 1 else None


def as_number(value: float | None, form: str | None = None) -> str:
    """A number in a table; without a `form` it is a score."""
    if value is None:
        return NONE
    return rounded(value) if form is None else f"{value:{form}}"


def with_deviation(value: float | None, spread: float | None) -> str:
    """0.8052 ± 0.0031, as in a table."""
    if value is None or spread is None:
        return as_number(value)
    return f"{rounded(value)} ± {rounded(spread, like=value)}"


def _layers(score: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    layers = score.get("staleness")
    return None if layers is None else tuple(layers)
