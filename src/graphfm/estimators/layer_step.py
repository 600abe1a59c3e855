"""What estimators are handed."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from graphfm.batch import Block
from graphfm.layer import GraphLayer
from graphfm.tables.base import NodeTable


class NewTable(Protocol):
    """Makes an empty table of the run's number type; of float32 where digits count (`exact`).

    `last`: only what the last layer writes needs a row.
    """

    def __call__(self, width: int, *, exact: bool = False, last: bool = False) -> NodeTable: ...


@dataclass(frozen=True, slots=True)
class LayerStep:
    """One layer applied to one block."""

    depth: int
    layer: GraphLayer
    block: Block
    h: Tensor  # [num_src, in_width] complete, after dropout
    h0: Tensor  # [num_src, width] encoder output
    mask: Tensor | None = None  # [num_src, in_width] what dropout multiplied h by, where asked for
