"""Where a training stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.training.callbacks import EpochRecord
from graphfm.training.settings import Training


@dataclass(kw_only=True)
class Progress:
    """What each epoch gave, and the weights of the best."""

    prepare_seconds: float
    records: list[EpochRecord] = field(default_factory=list)
    best: EpochRecord | None = None
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    epoch_seconds: float = 0.0  # of the epoch that is running, up to where it was left
    seconds: float = field(init=False)  # of all epochs that ended, and of preparation

    def __post_init__(self) -> None:
        self.seconds = self.prepare_seconds

    @property
    def best_value(self) -> float:
        """The best validation score so far, -1 before there is any."""
        return -1.0 if self.best is None or self.best.val is None else self.best.val

    def add(self, record: EpochRecord) -> bool:
        """Take note of an epoch that ended. Is it the best so far?"""
        self.records.append(record)
        self.seconds += record.seconds
        self.epoch_seconds = 0.0
        if record.val is None or record.val <= self.best_value:
            return False
        self.best = record
        return True

    def keep(self, backbone: Backbone) -> None:
        """The weights as they are now are the best so far."""
        self.best_weights = {name: rows.clone() for name, rows in backbone.state_dict().items()}

    def ends_with(self, number: int, seconds: float, settings: Training) -> bool:
        """Is an epoch the last, by its number or by the time that is up with it?"""
        return number == settings.epochs or seconds >= (settings.max_seconds or math.inf)

    def is_over(self, settings: Training) -> bool:
        """Has the last epoch been?"""
        if not self.records:
            return False
        last, best = self.records[-1], self.best
        if self.ends_with(last.epoch, self.seconds, settings):
            return True
        tired = best is not None and 0 < settings.patience <= last.epoch - best.epoch
        return last.val is not None and tired

    def to_json(self) -> dict[str, Any]:
        """All but the weights."""
        return {
            "prepare_seconds": self.prepare_seconds,
            "epoch_seconds": self.epoch_seconds,
            "records": [asdict(record) for record in self.records],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Stand where `to_json` was called."""
        self.prepare_seconds = self.seconds = float(saved["prepare_seconds"])
        self.records, self.best = [], None
        for record in saved["records"]:
            layers = record["staleness"]
            stale = None if layers is None else tuple(layers)
            self.add(EpochRecord(**{**record, "staleness": stale}))
        self.epoch_seconds = float(saved["epoch_seconds"])
