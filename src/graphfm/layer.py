"""A graph layer, cut in two where estimators step in."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from graphfm.batch import Block, Targets
from graphfm.kernels.halo_update import Affine
from graphfm.kernels.linear import linear
from graphfm.norm import MaskedBatchNorm


class GraphLayer(nn.Module, ABC):
    """dropout -> aggregate -> update, where update ends in norm -> residual -> activation."""

    # Is `aggregate` just `ops.weighted_sum`, so that one kernel may do it with what surrounds it?
    sums: ClassVar[bool] = False
    # Does `update` read aggregate and own row as one (`Targets.joined`), where they are given so?
    joins: ClassVar[bool] = False

    def __init__(
        self,
        in_width: int,
        agg_width: int,
        out_width: int,
        *,
        dropout: float,
        batch_norm: bool,
        residual: bool,
        activation: bool,
    ) -> None:
        super().__init__()
        self.in_width, self.agg_width, self.out_width = in_width, agg_width, out_width
        self.message_width = 0  # of what `aggregate` makes of each source before it combines them
        self.dropout = nn.Dropout(dropout)  # on h, once, before both halves
        self.norm = MaskedBatchNorm(out_width) if batch_norm else None
        self.residual = residual and in_width == out_width
        self.activation = activation

    @property
    def is_linear(self) -> bool:
        """Is `aggregate` a linear map of the rows? Only then can it be sampled without bias."""
        return True

    def affine(self) -> Affine | None:
        """What `update` does in evaluation, if it reads the aggregate alone; without gradients."""
        return None

    @abstractmethod
    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        """Combine source rows along the edges: [num_src, in_width] -> [num_dst, agg_width]."""

    @abstractmethod
    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        """Turn each target's aggregate into its output. Row-wise, batch statistics aside.

        What it is given may be read once more, so nothing of it is changed in place.
        """

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor, targets: Targets) -> Tensor:
        """Rows times a matrix, plus a bias, and `finish`, at once where that can be."""
        at_once = self.activation and self.norm is None and not self.residual
        out = linear(rows, weight, bias, relu=at_once)
        return out if at_once else self.finish(out, targets)

    def folded(self, weight: Tensor, bias: Tensor) -> Affine:
        """A matrix and bias with the batch norm of evaluation in them, and the activation."""
        if self.norm is not None:
            weight, bias = self.norm.folded(weight, bias)
        return Affine(weight.detach(), bias.detach(), self.activation)

    def finish(self, out: Tensor, targets: Targets) -> Tensor:
        """The end that every update shares."""
        if self.norm is not None:
            out = self.norm(out, targets.valid)
        if self.residual:
            out = out + targets.h
        return out.relu_() if self.activation else out
