"""What estimators are handed."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from graphfm.batch import Block
from graphfm.layer import GraphLayer
from graphfm.tables.base import NodeTable

NewTable = Callable[[int], NodeTable]  # width -> empty table


@dataclass(frozen=True, slots=True)
class LayerStep:
    """One layer applied to one block."""

    depth: int
    layer: GraphLayer
    block: Block
    h: Tensor  # [num_src, in_width] complete, after dropout
    h0: Tensor  # [num_src, width] encoder output
