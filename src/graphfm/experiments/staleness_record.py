"""Measures the staleness of histories while a training runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from graphfm.training.callbacks import Callback, EpochRecord
from graphfm.training.staleness import LayerStaleness, staleness
from graphfm.training.trainer import Trainer

STALENESS = "staleness"  # the measure of a cell


class StalenessRecord(Callback):
    """The staleness of each layer's history after each epoch of the second half."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.epochs = trainer, list[list[LayerStaleness]]()

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        if record.epoch > self.trainer.training.epochs // 2:
            self.epochs.append(staleness(self.trainer))

    def to_json(self) -> dict[str, Any]:
        return {"epochs": [[asdict(layer) for layer in epoch] for epoch in self.epochs]}


def mean_staleness(records: Sequence[Mapping[str, Any]]) -> list[LayerStaleness]:
    """By layer, the mean over the epochs of all seeds."""
    epochs = [epoch for record in records for epoch in record["epochs"]]
    return [
        LayerStaleness(
            layers[0]["depth"],
            fmean(layer["score"] for layer in layers),
            fmean(layer["relative"] for layer in layers),
        )
        for layers in zip(*epochs, strict=True)
    ]
