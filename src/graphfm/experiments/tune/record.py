"""One trial as everything but the storage sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphfm.metrics.names import AUTO, gain

COMPLETE, STOPPED, FAILED, RUNNING = "complete", "stopped", "failed", "running"
MOST_FAILURES = 5  # of a method none of whose trainings finished


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """The settings of one training of the search, and how far it came on validation."""

    method: str
    number: int  # counted from 1
    state: str
    settings: Mapping[str, Any]
    is_default: bool = False  # the method's defaults, which are tried first
    val: float | None = None  # the best so far
    epochs: int | None = None
    best_epoch: int | None = None
    seconds: float = 0.0  # of its process, so far if it runs
    jobs: int = 1  # trainings at a time when it ran
    peak_bytes: int | None = None
    note: str = ""
    metric: str = AUTO  # what `val` is, as the settings say
    undefined: bool = False  # the method is not defined for this graph or network
    curve: Sequence[Sequence[float]] = field(default=(), repr=False)  # epoch and validation

    @property
    def gain(self) -> float:
        """`val` with the sign that makes higher better; the least of all without one."""
        return -math.inf if self.val is None else gain(self.metric, self.val)

    @property
    def cost(self) -> float:
        """Seconds of the budget that it took: trainings at the same time share them."""
        return self.seconds / self.jobs


Records = Sequence[TrialRecord]


def of(method: str, records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The trials of one method."""
    return [record for record in records if record.method == method]


def best(records: Iterable[TrialRecord]) -> TrialRecord | None:
    """The best on validation among those that trained to their end; of equal ones the first."""
    complete = [r for r in records if r.state == COMPLETE and r.val is not None]
    return max(complete, key=lambda record: record.gain, default=None)


def gave_up(records: Records) -> str | None:
    """Why a method is not tried again although there may be time; None if it is."""
    undefined = next((r for r in records if r.undefined and r.is_default), None)
    if undefined is not None:
        return f"not defined: {undefined.note}"
    failed = [record for record in records if record.state == FAILED]
    if len(failed) >= MOST_FAILURES and not any(r.state in (COMPLETE, STOPPED) for r in records):
        return f"none of {len(failed)} trainings finished: {failed[0].note}"
    return None


def counts(records: Records) -> str:
    """In words: 12 trainings, 8 of them stopped early, 1 failed."""
    number = len(records)
    text = f"{number} training{'' if number == 1 else 's'}"
    stopped = sum(record.state == STOPPED for record in records)
    failed = sum(record.state == FAILED for record in records)
    parts = [f"{stopped} of them stopped early"] if stopped else []
    parts += [f"{failed} failed"] if failed else []
    return ", ".join([text, *parts])
