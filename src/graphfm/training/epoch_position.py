"""How far an epoch is."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from graphfm.samplers.base import Sampler


@dataclass
class Position:
    """Enough to leave an epoch between two steps, and to take it up again as if nothing was."""

    start: Tensor  # state of the generator from which the order of the epoch is drawn
    steps: int = 0  # that were taken

    def rest(self, sampler: Sampler, rng: torch.Generator, most: int) -> Iterator[Tensor]:
        """What the steps still to come start from; `most` steps in all, or 0 for no limit."""
        if self.steps == 0:
            return islice(iter(sampler.epoch(rng)), most or None)
        now = rng.get_state()
        rng.set_state(self.start)
        batches = islice(iter(sampler.epoch(rng)), most or None)
        for _ in islice(batches, self.steps):
            pass
        rng.set_state(now)
        return batches
