"""The progress of a training: its epochs so far, and the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.training.callbacks import EpochRecord
from graphfm.training.question_settings import QuestionSettings
from graphfm.training.settings import Training


@dataclass(kw_only=True)
class Progress:
    """The records of all epochs so far, and the weights of the best epoch."""

    prepare_seconds: float
    records: list[EpochRecord] = field(default_factory=list)
    best: EpochRecord | None = None
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    epoch_seconds: float = 0.0  # spent in the current epoch, up to the last checkpoint
    seconds: float = field(init=False)  # spent in finished epochs and in preparation

    def __post_init__(self) -> None:
        self.seconds = self.prepare_seconds

    @property
    def best_value(self) -> float:
        """The best validation score so far, or -1 before the first."""
        return -1.0 if self.best is None or self.best.val is None else self.best.val

    def add(self, record: EpochRecord, settings: QuestionSettings) -> bool:
        """Add a finished epoch; returns True if it is the best so far."""
        self.records.append(record)
        self.seconds += record.seconds
        self.epoch_seconds = 0.0
        if record.val is None:
            return False
        before = None if self.best is None else self.best.val
        if before is not None and settings.gain(record.val) <= settings.gain(before):
            return False
        self.best = record
        return True

    def keep(self, backbone: Backbone) -> None:
        """Keep a copy of the current weights as the best so far."""
        self.best_weights = {name: rows.clone() for name, rows in backbone.state_dict().items()}

    def ends_with(self, number: int, seconds: float, settings: Training) -> bool:
        """True if this epoch is the last, by its number or by the time limit."""
        return number == settings.epochs or seconds >= (settings.max_seconds or math.inf)

    def is_over(self, settings: Training) -> bool:
        """True if the training has ended: last epoch, time limit or patience."""
        if not self.records:
            return False
        last, best = self.records[-1], self.best
        if self.ends_with(last.epoch, self.seconds, settings):
            return True
        out_of_patience = best is not None and 0 < settings.patience <= last.epoch - best.epoch
        return last.val is not None and out_of_patience

    def to_json(self) -> dict[str, Any]:
        """Everything except the weights, as JSON values."""
        return {
            "prepare_seconds": self.prepare_seconds,
            "epoch_seconds": self.epoch_seconds,
            "records": [asdict(record) for record in self.records],
        }

    def restore(self, saved: Mapping[str, Any], settings: QuestionSettings) -> None:
        """Take over the progress that `to_json` returned."""
        self.prepare_seconds = self.seconds = float(saved["prepare_seconds"])
        self.records, self.best = [], None
        for record in saved["records"]:
            layers = record["staleness"]
            stale = None if layers is None else tuple(layers)
            self.add(EpochRecord(**{**record, "staleness": stale}), settings)
        self.epoch_seconds = float(saved["epoch_seconds"])
