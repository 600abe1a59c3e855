"""What a step begins with."""

from dataclasses import dataclass

from graphfm.batch import Batch
from graphfm.training.features import Input
from graphfm.training.objective import Objective


@dataclass(frozen=True, slots=True)
class Drawn:
    """A batch, what the first layer reads, what is minimised: nothing that other steps change."""

    batch: Batch
    x: Input
    objective: Objective
