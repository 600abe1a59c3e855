"""What was measured of one case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Contender
from graphfm.experiments.bench.floor import StepBytes
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.meter import EpochCost


@dataclass(frozen=True, kw_only=True)
class Side:
    """Some epochs of one contender, and the first ones apart."""

    name: str
    note: str
    prepare_seconds: float
    warmup: Sequence[EpochCost]  # includes what happens only once: compiling, capturing
    epochs: Sequence[EpochCost]

    @classmethod
    def of(
        cls, contender: Contender, warmup: Sequence[EpochCost], epochs: Sequence[EpochCost]
    ) -> Side:
        return cls(
            name=contender.name,
            note=contender.note,
            prepare_seconds=contender.prepare_seconds,
            warmup=warmup,
            epochs=epochs,
        )

    @property
    def seconds(self) -> float:
        return median(epoch.seconds for epoch in self.epochs)

    @property
    def warmup_seconds(self) -> float:
        return sum(epoch.seconds for epoch in self.warmup)

    @property
    def peak_bytes(self) -> int:
        return max(epoch.peak_bytes for epoch in (*self.warmup, *self.epochs))

    @property
    def added_bytes(self) -> int | None:
        """What an epoch adds to memory; a captured step allocates when it is captured."""
        known = [epoch.added_bytes for epoch in self.epochs if epoch.added_bytes is not None]
        return max(known, default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "seconds": self.seconds,
            "seconds_min": min(epoch.seconds for epoch in self.epochs),
            "seconds_max": max(epoch.seconds for epoch in self.epochs),
            "warmup_seconds": self.warmup_seconds,
            "prepare_seconds": self.prepare_seconds,
            "peak_bytes": self.peak_bytes,
            "epoch_bytes": self.added_bytes,
        }


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A case that ran."""

    suite: str
    case: Case
    machine: Machine
    steps: float  # of an epoch
    ours: Side
    rival: Side | None
    no_rival: str | None  # why there is none, although there should be
    floor: StepBytes | None  # of a step

    @property
    def ratios(self) -> list[float]:
        """Our seconds divided by the rival's, for epochs that ran one after the other."""
        if self.rival is None:
            return []
        pairs = zip(self.ours.epochs, self.rival.epochs, strict=True)
        return [ours.seconds / rival.seconds for ours, rival in pairs]

    @property
    def ratio(self) -> float | None:
        return median(self.ratios) if self.ratios else None

    @property
    def memory_ratio(self) -> float | None:
        """What an epoch of ours adds to memory, divided by what one of the rival's adds."""
        if self.rival is None or not self.rival.added_bytes or self.ours.added_bytes is None:
            return None
        return self.ours.added_bytes / self.rival.added_bytes

    @property
    def floor_seconds(self) -> float | None:
        """The least time of an epoch, at the bandwidth that was measured."""
        if self.floor is None:
            return None
        return self.steps * self.floor.total / self.machine.bandwidth

    @property
    def floor_share(self) -> float | None:
        """The least time divided by ours: 1 would be as fast as memory allows."""
        return None if self.floor_seconds is None else self.floor_seconds / self.ours.seconds

    @property
    def note(self) -> str:
        """Which rival it was, or why there is none; empty where there should be none."""
        if self.rival is not None:
            return self.rival.note
        return "" if self.no_rival is None else f"no rival: {self.no_rival}"

    def to_json(self) -> dict[str, Any]:
        return {
            **self.case.to_json(self.suite, self.machine),
            "status": "measured",
            "steps": self.steps,
            "repeats": len(self.ours.epochs),
            **self.ours.to_json(),
            "rival": None if self.rival is None else self.rival.to_json(),
            "no_rival": self.no_rival,
            "ratio": self.ratio,
            "ratio_min": min(self.ratios, default=None),
            "ratio_max": max(self.ratios, default=None),
            "memory_ratio": self.memory_ratio,
            "floor_bytes_per_step": None if self.floor is None else asdict(self.floor),
            "floor_seconds": self.floor_seconds,
            "floor_share": self.floor_share,
            "note": self.note,
        }
