"""What a training tells of itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphfm.backbones.base import Backbone


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One line of `metrics.jsonl`."""

    epoch: int  # counted from 1
    loss: float
    val: float | None  # None when this epoch was not evaluated
    lr: float
    seconds: float  # of training, evaluation not included
    staleness: tuple[dict[str, float | None], ...] | None = None  # by layer, where measured


@dataclass(frozen=True, kw_only=True)
class Score:
    """How a training ended. `test` was looked at once, at the epoch best on validation."""

    val: float
    test: float | None  # None when the graph has no test nodes
    best_epoch: int
    epochs: int
    seconds_per_epoch: float  # median
    seconds_to_best: float  # of training and preparation, up to the best epoch
    prepare_seconds: float  # what was done once: parts, probabilities, first hop
    nodes_per_step: float  # rows of features read, and
    edges_per_step: float  # edges followed in all layers; means
    staleness: tuple[dict[str, float | None], ...] | None = None  # of the best epoch, if measured
    peak_bytes: int


class Callback:
    """Told of what happens; does nothing by default."""

    def on_begin(self, records: Sequence[EpochRecord]) -> None:
        """Training begins, or goes on after these epochs."""

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        """An epoch ended; `best` is the best validation score so far, -1 before there is any."""

    def on_best(self, backbone: Backbone) -> None:
        """The weights are the best so far."""
