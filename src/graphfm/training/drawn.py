"""What a step begins with."""

from dataclasses import dataclass

from graphfm.batch import Batch
from graphfm.training.objective import Objective
from graphfm.training.step_input import Input


@dataclass(frozen=True, slots=True)
class StepInput:
    """A batch, what the first layer reads, what is minimised: nothing that other steps change."""

    batch: Batch
    x: Input
    objective: Objective
