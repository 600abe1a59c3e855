"""How a cell ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from graphfm.training.callbacks import Score

FINISHED, UNDEFINED, FAILED = "finished", "not defined", "failed"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A score, or the reason why there is none."""

    status: str
    score: Score | None = None
    error: str | None = None  # one line
    details: str | None = None  # the end of what the process said of it
    warning: str | None = None  # of a training that finished, what one should know

    def __post_init__(self) -> None:
        assert (self.status == FINISHED) == (self.score is not None)
        assert self.status in (FINISHED, UNDEFINED, FAILED)

    @property
    def settled(self) -> bool:
        """Would it end the same if it were run again?"""
        return self.status != FAILED

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Outcome:
        score = record["score"]
        return cls(
            status=record["status"],
            score=None if score is None else Score(**score | {"staleness": _layers(score)}),
            error=record["error"],
            details=record["details"],
            warning=record.get("warning"),
        )


def _layers(score: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    layers = score.get("staleness")
    return None if layers is None else tuple(layers)
