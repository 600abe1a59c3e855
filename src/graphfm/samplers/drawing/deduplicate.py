"""Remove duplicate nodes from a layer, on a CPU."""

import torch
from torch import Tensor


class Deduplicate:
    """Does the work of `targets_first` without sorting, in time proportional to the layer."""

    def __init__(self, num_nodes: int) -> None:
        # Scratch memory: valid during a call only.
        self.position_of_node = torch.empty(num_nodes, dtype=torch.int32)

    def __call__(self, dst_ids: Tensor, neighbor_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Distinct node ids, targets first, and the position (int32) of each neighbour among them.

        No target may occur twice.
        """
        # On a CPU `scatter_` writes in order, so the last of equal ids always wins. An indexed
        # assignment would run on several threads, in no fixed order.
        positions = self.position_of_node
        number = torch.arange(neighbor_ids.numel(), dtype=torch.int32)
        positions.scatter_(0, neighbor_ids, number)
        positions.index_fill_(0, dst_ids, -1)
        new = (positions.index_select(0, neighbor_ids) == number).nonzero().squeeze(1)
        src_ids = torch.cat([dst_ids, neighbor_ids.index_select(0, new)])
        positions.scatter_(0, src_ids, torch.arange(src_ids.numel(), dtype=torch.int32))
        return src_ids, positions.index_select(0, neighbor_ids)
