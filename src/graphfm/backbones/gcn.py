"""The graph convolutional network (Kipf & Welling, 2017)."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Init, Settings, initialize, stack
from graphfm.batch import Block, Targets
from graphfm.data.graph import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.kernels import weighted_sum
from graphfm.kernels.halo_update import Affine
from graphfm.layer import GraphLayer
from graphfm.options import Setting


@dataclass(frozen=True, kw_only=True)
class GCNSettings(Settings):
    """The settings of `GCN`."""

    diagonal: Annotated[
        float,
        Setting(
            "Factor of the matrix's diagonal that is added to the matrix (Cluster-GCN).", rare=True
        ),
    ] = 0.0
    init: Init = "torch"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.diagonal < math.inf:
            raise InputError(f"diagonal is {self.diagonal}; expected 0 or more")


class GCNLayer(GraphLayer):
    """W sum(A_vu h_u), A the symmetrically normalised adjacency with self-loops."""

    sums = True

    def __init__(
        self, in_width: int, out_width: int, *, init: str = "torch", **options: Any
    ) -> None:
        super().__init__(in_width, in_width, out_width, **options)
        self.linear = initialize(nn.Linear(in_width, out_width), init)

    def affine(self) -> Affine | None:
        if self.residual or type(self) is not GCNLayer:  # a subclass may have another `update`
            return None
        return self.folded(self.linear.weight, self.linear.bias)

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        return weighted_sum(h, block)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        return self.product(agg, self.linear.weight, self.linear.bias, targets)


class GCN(Backbone):
    """Averages each node's row with its neighbours', weighted by degree. Simple and fast."""

    Settings = GCNSettings

    def __init__(
        self, in_width: int, out_width: int, settings: GCNSettings = GCNSettings()
    ) -> None:
        self.diagonal = settings.diagonal
        make_layer = partial(GCNLayer, init=settings.init)
        layers = stack(make_layer, in_width, out_width, settings)
        super().__init__(nn.Identity(), layers, nn.Identity())

    def adjacency(self, graph: Graph) -> Adjacency:
        return Adjacency.symmetric(graph, diagonal=self.diagonal)
