"""The position within an epoch, from which it can be continued."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from graphfm.samplers.base import Sampler


@dataclass
class Position:
    """What is needed to stop an epoch between two steps and to continue it identically."""

    start: Tensor  # state of the random generator at the start of the epoch
    steps: int = 0  # steps taken so far

    def rest(self, sampler: Sampler, rng: torch.Generator, most: int) -> Iterator[Tensor]:
        """The seeds of the remaining steps, of at most `most` steps in the epoch (0: no limit)."""
        if self.steps == 0:
            return islice(iter(sampler.epoch(rng)), most or None)
        now = rng.get_state()
        rng.set_state(self.start)
        batches = islice(iter(sampler.epoch(rng)), most or None)
        for _ in islice(batches, self.steps):
            pass
        rng.set_state(now)
        return batches
