"""Samplers turn a graph into batches. A sampler decides what; the trainer decides when."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency


class Sampler(ABC):
    """Settings are stored by `__init__`; work happens in `prepare`."""

    @property
    def views(self) -> frozenset[str]:
        """Optional Block fields this sampler fills."""
        return frozenset()

    wants_gradients: ClassVar[bool] = False  # call `snapshot` at the start of each epoch
    first_hop_known: bool = False  # the first layer needs no neighbours: do not sample any
    reads_in_place: bool = False  # the first layer can read features where they are, by node id
    tells_where: bool = False  # kernels find whole neighbourhoods by `Block.every`; lay out none

    @property
    def static_shapes(self) -> bool:
        """Do all shapes of a batch follow from the number of its seeds?"""
        return False

    @abstractmethod
    def prepare(self, adjacency: Adjacency, num_layers: int) -> None:
        """Do the work needed once: partition, sampling probabilities, norms."""

    def snapshot(self, norms: Tensor) -> None:
        """Be told how large the gradients of the training nodes' losses are."""
        raise AssertionError(f"{type(self).__name__} wants no gradients")

    def state(self) -> dict[str, Tensor]:
        """What `snapshot` left and batches depend on; all else follows from graph and settings."""
        return {}

    @abstractmethod
    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        """About how large each layer of a batch will be, input first."""

    def starting_ids(self) -> Tensor | None:
        """The only nodes that the last layer writes, after `prepare`; None where it may be any."""
        return None

    @abstractmethod
    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        """What each step starts from: seed nodes, or part numbers."""

    @abstractmethod
    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        """Build one batch. Pure: same seeds and generator state, same batch."""
