"""A table in the memory of the compute device."""

import torch
from torch import Tensor

from graphfm.tables.base import NodeTable


class DeviceTable(NodeTable):
    """All rows resident, in any floating-point type; arithmetic outside is float32."""

    def __init__(
        self,
        num_nodes: int,
        width: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.rows = torch.zeros(num_nodes + 1, width, dtype=dtype, device=device)

    @torch.no_grad()
    def pull(self, ids: Tensor) -> Tensor:
        return self.rows[ids].float()

    @torch.no_grad()
    def push(self, ids: Tensor, values: Tensor) -> None:
        self.rows[ids] = values.to(self.rows.dtype)
