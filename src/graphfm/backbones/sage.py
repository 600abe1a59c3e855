"""GraphSAGE (Hamilton et al., 2017) with the mean aggregator."""

from typing import Any

from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Settings, stack
from graphfm.batch import Block, Targets
from graphfm.layer import GraphLayer
from graphfm.ops import weighted_sum


class SAGELayer(GraphLayer):
    """W_1 mean(h_u : u in N_v) + W_2 h_v."""

    def __init__(self, in_width: int, out_width: int, **options: Any) -> None:
        super().__init__(in_width, in_width, out_width, **options)
        self.neighbors = nn.Linear(in_width, out_width)
        self.root = nn.Linear(in_width, out_width, bias=False)

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        return weighted_sum(h, block)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        return self.finish(self.neighbors(agg) + self.root(targets.h), targets)


class SAGE(Backbone):
    """Each node's own row beside the mean of its neighbours'. A good first choice."""

    def __init__(self, in_width: int, out_width: int, settings: Settings = Settings()) -> None:
        layers = stack(SAGELayer, in_width, out_width, settings)
        super().__init__(nn.Identity(), layers, nn.Identity())
