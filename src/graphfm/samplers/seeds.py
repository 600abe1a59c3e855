"""The base of samplers whose batches start from training nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.data.matrix.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.samplers.base import Sampler
from graphfm.step_plan import StepPlan

EVEN, INDEPENDENT = PICKS = ("even", "independent")  # how neighbours are picked


@dataclass(kw_only=True)
class SeedSampler(Sampler):
    """Takes every training node once per epoch, `batch_size` at a time, in a new random order."""

    starts_at_training_nodes: ClassVar[bool] = True
    batch_size: int

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError(f"batch_size is {self.batch_size}; expected 1 or more")

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        self.adjacency, self.plan, self.num_layers = adjacency, plan, plan.num_layers
        self.train_ids = adjacency.graph.train_mask.nonzero().squeeze(1)

    def starting_ids(self) -> Tensor | None:
        return self.train_ids

    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        order = torch.randperm(self.train_ids.numel(), generator=rng, device=rng.device)
        return torch.split(self.train_ids[order], self.batch_size)


def by_depth(name: str, values: tuple[int, ...], num_layers: int) -> tuple[int, ...]:
    """The number of each layer, input first, as everything inside counts layers.

    Settings are given from the targets outward, as elsewhere in the field: the first number is that
    of the last layer, whose targets are the batch's. One number is for all layers.
    """
    if num_layers and len(values) not in (1, num_layers):
        raise InputError(
            f"{name} has {len(values)} numbers, but the network has {num_layers} layers; "
            "give one number per layer, or one for all"
        )
    return (values * num_layers)[:num_layers][::-1]


def check_picks(picks: str) -> None:
    if picks not in PICKS:
        raise InputError(f"picks is {picks}; expected {' or '.join(PICKS)}")


def check_numbers(name: str, values: tuple[int, ...], hint: str = "") -> None:
    if not values or min(values) < 1:
        said = ",".join(map(str, values)) or "empty"
        raise InputError(f"{name} is {said}; expected numbers of 1 or more, one per layer{hint}")
