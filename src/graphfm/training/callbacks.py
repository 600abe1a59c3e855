"""The events and records that a training reports to callbacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphfm.backbones.base import Backbone
from graphfm.metrics.names import gain
from graphfm.metrics.scores import Metrics


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One line of `metrics.jsonl`."""

    epoch: int  # counted from 1
    loss: float
    val: float | None  # None when this epoch was not evaluated
    lr: float
    seconds: float  # spent in training, without evaluation
    staleness: tuple[dict[str, float | None], ...] | None = None  # by layer, if measured


@dataclass(frozen=True, kw_only=True)
class Score:
    """How a training ended. `test` was computed once, at the best epoch on validation."""

    val: float
    test: float | None  # None when the graph has no test nodes
    best_epoch: int
    epochs: int
    seconds_per_epoch: float  # median
    seconds_to_best: float  # training and preparation, up to the best epoch
    prepare_seconds: float  # work done once: partition, probabilities, first hop
    nodes_per_step: float  # mean number of feature rows read
    edges_per_step: float  # mean number of edges used over all layers
    staleness: tuple[dict[str, float | None], ...] | None = None  # of the best epoch, if measured
    peak_bytes: int  # of everything, evaluation included
    train_bytes: int | None = None  # of preparation and steps alone; None if it is not known
    metric: str = "micro-f1"  # what `val` and `test` are
    metrics: Mapping[str, Metrics] = field(default_factory=dict)  # all of them, by split
    positive: str | None = None  # of two classes the one that rankings look for

    @property
    def gain(self) -> float:
        """`val`, with the sign that makes higher better."""
        return gain(self.metric, self.val)


class Callback:
    """Receives the events of a training; does nothing by default."""

    def on_begin(self, records: Sequence[EpochRecord]) -> None:
        """Training begins, or continues after these epochs."""

    def on_epoch(self, record: EpochRecord, best: float) -> bool | None:
        """An epoch ended; `best` is the best validation score so far, or -1 before the first.

        Return True to end the training, once an epoch has been evaluated.
        """
        return None

    def on_best(self, backbone: Backbone) -> None:
        """The weights are the best so far."""

    def on_end(self, score: Score) -> None:
        """The training has ended, and the weights are those of the best epoch."""
