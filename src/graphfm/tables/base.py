"""Node tables: one row per node, kept wherever there is room."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class NodeTable(ABC):
    """Rows of fixed or past values. The last row is a sink that padding may overwrite."""

    rows: Tensor  # [num_nodes + 1, width] all of them, as they are kept

    @abstractmethod
    def pull(self, ids: Tensor) -> Tensor:
        """Return a detached float32 copy of the rows, on the compute device."""

    @abstractmethod
    def push(self, ids: Tensor, values: Tensor) -> None:
        """Overwrite the rows. Where an id stands twice its values must agree, the sink excepted."""

    def add(self, ids: Tensor, values: Tensor) -> None:
        """Add to the rows. No id may stand twice."""
        self.push(ids, self.pull(ids) + values)

    def blend(self, ids: Tensor, values: Tensor, beta: float) -> None:
        """Move the rows towards `values`: 0 keeps the past, 1 forgets it."""
        self.push(ids, torch.lerp(self.pull(ids), values.detach(), beta))
