"""Node tables: one row per node, kept wherever there is room."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from graphfm.batch import HALO_ROWS, Block, halo_chunks
from graphfm.kernels.halo_update import Affine, Blend
from graphfm.kernels.sparse_sum import sum_of_rest


class NodeTable(ABC):
    """Rows of fixed or past values. The last row is a sink that padding may overwrite."""

    rows: Tensor  # [num_nodes + 1, width] all of them, as they are kept

    @abstractmethod
    def pull(self, ids: Tensor) -> Tensor:
        """Return a detached float32 copy of the rows, on the compute device."""

    @abstractmethod
    def push(self, ids: Tensor, values: Tensor) -> None:
        """Overwrite the rows. Where an id stands twice its values must agree, the sink excepted."""

    @torch.no_grad()
    def put_outputs(self, ids: Tensor, affine: Affine, sums: NodeTable) -> None:
        """Overwrite the rows with what a layer makes of those of another table."""
        for some in torch.split(ids, HALO_ROWS):
            self.push(some, affine(sums.pull(some)))

    @torch.no_grad()
    def spread(self, rows: Tensor, view: Block, blend: Blend | None = None) -> None:
        """Sum a batch's rows along the edges to its halo, and add that to the halo's rows.

        With `blend` they are rows times a layer's matrix, and the halo's rows are moved towards
        what the layer makes of the sums.
        """
        ids = view.dst_ids
        for some, part in halo_chunks(view):
            total = sum_of_rest(rows, part)
            if blend is None:
                self.add(ids[some], total)
                continue
            if blend.factor is not None:
                total = total * blend.factor[some].unsqueeze(1)
            self.blend(ids[some], blend.affine.end(total), blend.share[some])

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
