"""The estimator that aggregates just what the batch holds."""

from typing import ClassVar

from torch import Tensor

from graphfm.batch import Block, Rows
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import ForwardPass
from graphfm.kernels import fused_aggregate
from graphfm.kernels.fused_aggregate import Combined
from graphfm.layer import GraphLayer


class Exact(Estimator):
    """Aggregates the block as it is: for full batch, and for methods whose sampler is unbiased."""

    capturable: ClassVar[bool] = True

    def first_layer_ahead(self, exact_first_hop: bool) -> bool:
        return self.can_fuse()

    def combine(
        self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows, forward: ForwardPass
    ) -> Combined:
        return fused_aggregate.combine(h, block, join=layer.joins, known=self._known(depth))
