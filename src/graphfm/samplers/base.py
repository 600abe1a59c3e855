"""Samplers turn a graph into batches. A sampler decides what a step sees; the trainer, when."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.step_plan import StepPlan


class Sampler(ABC):
    """Chooses which nodes and edges a step sees. `prepare` does the work that is needed once."""

    wants_gradients: ClassVar[bool] = False  # `snapshot` is called at the start of each epoch
    starts_at_training_nodes: ClassVar[bool] = False  # the last layer writes no other nodes
    # The smallest and largest number allowed in a tensor of `state_dict`, if not any finite one.
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}

    @property
    def always_trains(self) -> bool:
        """True if every batch has training nodes; known after `prepare`."""
        return True

    @property
    def views(self) -> frozenset[str]:
        """Optional fields of `Block` that this sampler fills."""
        return frozenset()

    def fixed_fanouts(self, size: GraphSize, num_layers: int) -> tuple[int, ...] | None:
        """Neighbours per node and layer, input first, if the sampler picks a fixed number."""
        return None

    def crowded_layers(
        self, size: GraphSize, num_layers: int, exact_first_hop: bool
    ) -> frozenset[int]:
        """Layers in which a full batch picks more nodes than there are: duplicates are removed."""
        return frozenset()

    def reads_in_place(self, device: torch.device, sums: bool) -> bool:
        """True if the first block reads features from their table, by node id.

        `sums` is True if the first layer does nothing with them but weighted sums.
        """
        return False

    def static_shapes(self, size: GraphSize, plan: StepPlan) -> bool:
        """True if the number of seeds determines every shape of a batch."""
        return False

    @abstractmethod
    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        """Do the work needed once: partition, sampling probabilities, norms."""

    def snapshot(self, norms: Tensor) -> None:
        """Take the norms of the training nodes' loss gradients, in the order of their ids."""
        raise AssertionError(f"{type(self).__name__} does not use gradients")

    def state_dict(self) -> dict[str, Tensor]:
        """Tensors that batches depend on beside graph, settings and random generator."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved state. Tensors are filled in place."""
        for name, rows in self.state_dict().items():
            rows.copy_(state[name])

    @abstractmethod
    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        """Estimate how large each layer of a batch will be, input first."""

    def starting_ids(self) -> Tensor | None:
        """The only nodes that the last layer writes, after `prepare`; None means any node."""
        return None

    @abstractmethod
    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        """Yield what each step of an epoch starts from: seed nodes, or part numbers."""

    @abstractmethod
    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        """Build one batch. Pure: same seeds and generator state, same batch."""
