"""A graph layer in two halves, `aggregate` and `update`; estimators act between them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from torch import Tensor, nn

from graphfm.batch import Block, Targets
from graphfm.kernels.halo_update import Affine
from graphfm.kernels.linear import linear
from graphfm.norm import BatchNorm


class GraphLayer(nn.Module, ABC):
    """dropout -> aggregate -> update, where update ends in norm -> residual -> activation."""

    # `aggregate` is just `kernels.weighted_sum`, so kernels may fuse it with other operations.
    sums: ClassVar[bool] = False
    # `update` can read aggregate and own row from one joined tensor (`Targets.joined`).
    joins: ClassVar[bool] = False
    reads_features: bool = False  # its input rows are raw features, which never change
    can_repeat: bool = True  # `aggregate` may be called again, with other rows
    updates: ClassVar[bool] = True  # False if only the network itself can turn aggregates into rows

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
        self.message_width = 0  # width of the messages that `aggregate` computes per source
        self.dropout = nn.Dropout(dropout)  # on the input, once, before both halves
        self.norm = BatchNorm(out_width) if batch_norm else None
        self.residual = residual and in_width == out_width
        self.activation = activation

    @contextmanager
    def with_residual(self, residual: bool) -> Iterator[None]:
        """Leave out the residual connection for a while, if `residual` is False."""
        before, self.residual = self.residual, self.residual and residual
        try:
            yield
        finally:
            self.residual = before

    @property
    def is_linear(self) -> bool:
        """True if `aggregate` is a linear map of the rows: only then is sampling it unbiased."""
        return True

    def affine(self) -> Affine | None:
        """What `update` does in evaluation, if that is a matrix, a bias and perhaps a ReLU.

        It must read the aggregate alone. The tensors carry no gradient.
        """
        return None

    @abstractmethod
    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        """Combine source rows along the edges: [num_src, in_width] -> [num_dst, agg_width]."""

    @abstractmethod
    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        """Turn each target's aggregate into its output. Row-wise, batch statistics aside.

        The arguments may be read again afterwards, so `update` must not change them in place.
        """

    def product(self, rows: Tensor, weight: Tensor, bias: Tensor, targets: Targets) -> Tensor:
        """Multiply rows by a matrix, add a bias and `finish`, in one operation where possible."""
        at_once = self.activation and self.norm is None and not self.residual
        out = linear(rows, weight, bias, relu=at_once)
        return out if at_once else self.finish(out, targets)

    def folded(self, weight: Tensor, bias: Tensor) -> Affine:
        """The matrix and bias with the batch norm of evaluation folded in, and the activation."""
        if self.norm is not None:
            weight, bias = self.norm.folded(weight, bias)
        return Affine(weight.detach(), bias.detach(), self.activation)

    def finish(self, out: Tensor, targets: Targets) -> Tensor:
        """Apply norm, residual connection and activation: the end of every update."""
        if self.norm is not None:
            out = self.norm(out)
        if self.residual:
            out = out + targets.h
        return out.relu_() if self.activation else out
