"""The curve of a training: what each epoch gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphfm.training.callbacks import Callback, EpochRecord

FIELDS = ("epoch", "loss", "val", "lr", "seconds")
Curve = Mapping[str, Sequence[Any]]  # a list for each of the fields, with an item for each epoch


class CurveRecord(Callback):
    """Keeps what each epoch gave, as lists, which take little room as JSON."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = {name: [] for name in FIELDS}

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        for name, values in self.lists.items():
            values.append(getattr(record, name))

    def to_json(self) -> Curve | None:
        """None before the first epoch has ended."""
        return self.lists if self.lists["epoch"] else None
