"""Node tables: one row per node, on the compute device or elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import HALO_ROWS, Block, halo_chunks
from graphfm.kernels.halo_update import Affine, Blend
from graphfm.kernels.sparse_sum import sum_of_rest


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """A table that an estimator asks for: one row of `width` numbers per node."""

    width: int
    exact: bool = False  # float32 even if the run's histories have another number type
    seeds_only: bool = False  # only the nodes that steps start from are ever written
    scratch: bool = False  # used within a step only, so checkpoints leave it out
    unwritten: float = 0.0  # what rows hold before they are written


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """A table that a run will keep: its size, its number type and where it lives."""

    spec: TableSpec
    num_rows: int
    dtype: torch.dtype
    where: str = "device"  # the only kind so far

    @property
    def num_bytes(self) -> int:
        return (self.num_rows + 1) * self.spec.width * self.dtype.itemsize

    def __str__(self) -> str:
        number = str(self.dtype).removeprefix("torch.")
        return f"[{self.num_rows:,} x {self.spec.width}] {number} on the {self.where}"


@dataclass(frozen=True, slots=True)
class ResidentRows:
    """A table's memory on the compute device, for kernels that read and write it directly."""

    rows: Tensor  # [num_rows + 1, width]
    place: Tensor | None  # [num_nodes + 1] row of each node; None: row i belongs to node i


class NodeTable(ABC):
    """One row per node, of fixed or past values. The last row is a sink that nothing reads."""

    rows: Tensor  # [num_rows + 1, width] all rows, in the number type they are kept in

    @property
    def resident(self) -> ResidentRows | None:
        """The rows on the compute device; None for a table that lives elsewhere."""
        return None

    def kept_ids(self) -> Tensor | None:
        """The nodes that have a row; None means all nodes."""
        return None

    @abstractmethod
    def pull(self, ids: Tensor) -> Tensor:
        """Return a detached float32 copy of the rows, on the compute device."""

    @abstractmethod
    def push(self, ids: Tensor, values: Tensor) -> None:
        """Overwrite the rows. Values of repeated ids must be equal, except those of the sink."""

    @torch.no_grad()
    def put_outputs(self, ids: Tensor, affine: Affine, sums: NodeTable) -> None:
        """Overwrite the rows with a layer's outputs from the aggregates in another table."""
        for part in torch.split(ids, HALO_ROWS):
            self.push(part, affine(sums.pull(part)))

    @torch.no_grad()
    def spread(self, rows: Tensor, view: Block, blend: Blend | None = None) -> None:
        """Sum a batch's rows along the edges to its halo, and add that to the halo's rows.

        With `blend`, `rows` are already multiplied by a layer's matrix, and the halo's rows are
        blended with the layer's outputs from the sums.
        """
        ids = view.dst_ids
        for part, chunk in halo_chunks(view):
            total = sum_of_rest(rows, chunk)
            if blend is None:
                self.add(ids[part], total)
                continue
            if blend.factor is not None:
                total = total * blend.factor[part].unsqueeze(1)
            self.blend(ids[part], blend.affine.end(total), blend.share[part])

    def add(self, ids: Tensor, values: Tensor) -> None:
        """Add to the rows. Ids must be distinct."""
        self.push(ids, self.pull(ids) + values)

    def blend(self, ids: Tensor, values: Tensor, beta: float | Tensor) -> None:
        """Set the rows to (1 - beta) rows + beta values, with one beta for all or one per row.

        Ids must be distinct.
        """
        if isinstance(beta, Tensor):
            beta = beta.view(-1, 1).expand_as(values)
        self.push(ids, torch.lerp(self.pull(ids), values.detach().float(), beta))
