"""What `fused_aggregate` needs to know of a moving average: its tables, and how it moves."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

NEVER_SEEN = -0.0  # how a row of `Momentum.inputs` begins that was never written


def were_seen(rows: Tensor) -> Tensor:
    """[num_rows, 1] false for rows that hold `NEVER_SEEN`, which is 0 with a sign."""
    first = rows[:, :1]
    return (first != 0) | ~first.signbit()


@dataclass(frozen=True, slots=True)
class Noise:
    """Dropout of an average of rows, as strong as dropout of the rows would be."""

    odds: float  # p / (1 - p) for a dropout of p

    def drop(self, rows: Tensor, uniform: Tensor, degree: Tensor) -> Tensor:
        """Set some numbers of averages over so many rows to 0; the others grow: the mean stays."""
        kept = 1 / (1 + self.odds / degree.clamp(min=1).unsqueeze(1))
        return rows * uniform.lt_(kept).div_(kept)  # in place: `uniform` is needed no more


@dataclass(frozen=True, slots=True)
class Momentum:
    """A history to blend with, and by how much it moves."""

    past: Tensor  # [num_rows + 1, width]
    visits: Tensor  # [num_rows + 1, 1]
    place: Tensor | None  # [num_nodes + 1] row of each node in both, where only some have one
    beta: float
    fresh: bool  # the first visit takes all (visit-count correction)
    whole_gradient: bool
    inputs: Tensor | None = None  # [num_nodes + 1, width] rows as last seen
    noise: Noise | None = None

    @property
    def corrects(self) -> bool:
        """True if beta depends on how often a node was visited."""
        return self.fresh and 0 < self.beta < 1

    def rows_of(self, ids: Tensor) -> Tensor:
        """Return the rows of some nodes; the last row is a sink for nodes without one."""
        return ids if self.place is None else self.place.index_select(0, ids).long()
