"""What a step begins with."""

from dataclasses import dataclass

from torch import Tensor

from graphfm.batch import Batch, Rows
from graphfm.ops.fanout import Combined
from graphfm.training.objective import Objective

Input = Tensor | Rows | Combined  # features, where they lie, or what the first layer makes of them


@dataclass(frozen=True, slots=True)
class Drawn:
    """A batch, what the first layer reads, what is minimised: nothing that other steps change."""

    batch: Batch
    x: Input
    objective: Objective
