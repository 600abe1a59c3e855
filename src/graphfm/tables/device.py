"""A table in the memory of the compute device."""

from collections.abc import Mapping

import torch
from torch import Tensor

from graphfm.batch import Block
from graphfm.kernels.halo_update import Affine, Blend, spread
from graphfm.kernels.matmul import put_product
from graphfm.kernels.table_write import put_rows
from graphfm.tables.base import NodeTable, ResidentRows, TablePlan


class DeviceTable(NodeTable):
    """All rows in device memory, in any floating-point type; callers see float32.

    With `place`, only some nodes have a row: node i has row `place[i]`. For the other nodes that is
    the sink: what they push is lost, and they pull zeros.
    """

    def __init__(
        self,
        num_rows: int,
        width: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        place: Tensor | None = None,
        unwritten: float = 0.0,
    ) -> None:
        self.rows = torch.full((num_rows + 1, width), unwritten, dtype=dtype, device=device)
        self.place = place

    @property
    def resident(self) -> ResidentRows:
        return ResidentRows(self.rows, self.place)

    def kept_ids(self) -> Tensor | None:
        if self.place is None:
            return None
        return (self.place[:-1] < self.rows.size(0) - 1).nonzero().squeeze(1)

    @torch.no_grad()
    def pull(self, ids: Tensor) -> Tensor:
        rows = ids if self.place is None else self.place.index_select(0, ids)
        return self.rows.index_select(0, rows).float()  # on a CPU faster than self.rows[rows]

    @torch.no_grad()
    def push(self, ids: Tensor, values: Tensor) -> None:
        rows = ids if self.place is None else self.place.index_select(0, ids)
        put_rows(self.rows, rows, values)
        if self.place is not None:
            self.rows[-1] = 0

    @torch.no_grad()
    def add(self, ids: Tensor, values: Tensor) -> None:
        if self.place is None:
            put_rows(self.rows, ids, values, add=True)  # in one pass over the rows
        else:
            super().add(ids, values)

    @torch.no_grad()
    def blend(self, ids: Tensor, values: Tensor, beta: float | Tensor) -> None:
        if self.place is None and isinstance(beta, Tensor):
            put_rows(self.rows, ids, values, shares=beta)
        else:
            super().blend(ids, values, beta)

    @torch.no_grad()
    def put_outputs(self, ids: Tensor, affine: Affine, sums: NodeTable) -> None:
        if self.place is None and isinstance(sums, DeviceTable) and sums.place is None:
            put_product(self.rows, ids, affine, sums.rows)
        else:
            super().put_outputs(ids, affine, sums)

    @torch.no_grad()
    def spread(self, rows: Tensor, view: Block, blend: Blend | None = None) -> None:
        if self.place is None:
            spread(self.rows, rows, view, blend)
        else:
            super().spread(rows, view, blend)


def allocate(
    plans: Mapping[str, TablePlan],
    num_nodes: int,
    device: torch.device,
    seed_ids: Tensor | None = None,
) -> dict[str, NodeTable]:
    """Make the tables of a plan. Tables with rows for seeds only share one `place`."""
    place = None
    if seed_ids is not None and any(plan.num_rows < num_nodes for plan in plans.values()):
        place = places(seed_ids, num_nodes)
    return {
        name: DeviceTable(
            plan.num_rows,
            plan.spec.width,
            dtype=plan.dtype,
            device=device,
            place=place if plan.spec.seeds_only else None,
            unwritten=plan.spec.unwritten,
        )
        for name, plan in plans.items()
    }


def places(ids: Tensor, num_nodes: int) -> Tensor:
    """[num_nodes + 1] position of each node in `ids`; the number of ids for all others."""
    place = torch.full((num_nodes + 1,), ids.numel(), dtype=torch.int32, device=ids.device)
    place[ids] = torch.arange(ids.numel(), dtype=torch.int32, device=ids.device)
    return place
