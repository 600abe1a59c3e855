"""Each node of a layer once, on a CPU."""

import torch
from torch import Tensor


class Deduplicate:
    """What `targets_first` does, with nothing sorted and no sweep over the nodes of the graph."""

    def __init__(self, num_nodes: int) -> None:
        self.place = torch.empty(num_nodes, dtype=torch.int32)  # of a call; the next overwrites it

    def __call__(self, dst_ids: Tensor, neighbor_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Distinct node ids, targets first, and the position (int32) of each neighbour among them.

        No target may occur twice.
        """
        # `scatter_` on a CPU goes from first to last, so that the last of equal ids always wins;
        # `place[ids] = ...` shares its work among threads
        number = torch.arange(neighbor_ids.numel(), dtype=torch.int32)
        self.place.scatter_(0, neighbor_ids, number)
        self.place.index_fill_(0, dst_ids, -1)
        new = (self.place.index_select(0, neighbor_ids) == number).nonzero().squeeze(1)
        src_ids = torch.cat([dst_ids, neighbor_ids.index_select(0, new)])
        self.place.scatter_(0, src_ids, torch.arange(src_ids.numel(), dtype=torch.int32))
        return src_ids, self.place.index_select(0, neighbor_ids)
