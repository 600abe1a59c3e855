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

    def blend(self, ids: Tensor, values: Tensor, beta: float | Tensor) -> None:
        """Move the rows towards `values`, all or each by its beta: 0 keeps the past, 1 forgets it.

        No id may stand twice.
        """
        if isinstance(beta, Tensor):
            beta = beta.view(-1, 1).expand_as(values)
        self.push(ids, torch.lerp(self.pull(ids), values.detach().float(), beta))
