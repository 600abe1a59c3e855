"""GraphSAGE (Hamilton et al., 2017) with the mean aggregator."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from graphfm.backbones.base import Backbone, Settings, stack
from graphfm.batch import Block, Targets
from graphfm.kernels import weighted_sum
from graphfm.layer import GraphLayer


class SAGELayer(GraphLayer):
    """W_1 mean(h_u : u in N_v) + W_2 h_v, with W_1 and W_2 side by side in one matrix."""

    sums = joins = True

    def __init__(self, in_width: int, out_width: int, **options: Any) -> None:
        super().__init__(in_width, in_width, out_width, **options)
        neighbors = nn.Linear(in_width, out_width)
        root = nn.Linear(in_width, out_width, bias=False)
        self.weight = nn.Parameter(torch.cat([neighbors.weight, root.weight], dim=1).detach())
        self.bias = neighbors.bias

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        return weighted_sum(h, block)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        if targets.joined is not None:
            return self.product(targets.joined, self.weight, self.bias, targets)
        # Two products are cheaper than a copy that joins both rows.
        of_neighbors, of_self = self.weight.chunk(2, dim=1)
        out = torch.addmm(linear(agg, of_neighbors, self.bias), targets.h, of_self.t())
        return self.finish(out, targets)


class SAGE(Backbone):
    """Combines each node's row with the mean of its neighbours'. A good first choice."""

    def __init__(self, in_width: int, out_width: int, settings: Settings = Settings()) -> None:
        layers = stack(SAGELayer, in_width, out_width, settings)
        super().__init__(nn.Identity(), layers, nn.Identity())
