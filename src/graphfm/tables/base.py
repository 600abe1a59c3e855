"""Node tables: one row per node, kept wherever there is room."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from graphfm.batch import Block
from graphfm.ops.halo import Affine, Blend, put_outputs, spread


class NodeTable(ABC):
    """Rows of fixed or past values. The last row is a sink that padding may overwrite."""

    rows: Tensor  # [num_nodes + 1, width] all of them, as they are kept

    @abstractmethod
    def pull(self, ids: Tensor) -> Tensor:
        """Return a detached float32 copy of the rows, on the compute device."""

    @abstractmethod
    def push(self, ids: Tensor, values: Tensor) -> None:
        """Overwrite the rows. Where an id stands twice its values must agree, the sink excepted."""

    def put_outputs(self, ids: Tensor, affine: Affine, sums: NodeTable) -> None:
        """Overwrite the rows with what a layer makes of those of another table."""
        put_outputs(self.rows, ids, affine, sums.rows)

    def spread(self, rows: Tensor, view: Block, blend: Blend | None = None) -> None:
        """Add to a halo's rows what a batch sends it, or move them (see `ops.halo.spread`)."""
        spread(rows, view, self.rows, blend)

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
