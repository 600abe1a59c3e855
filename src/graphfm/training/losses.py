"""The losses of nodes: cross-entropy and focal loss of classes and labels, and of a regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    one_hot,
)

from graphfm.data.graph.labels import known, labelled
from graphfm.errors import InputError
from graphfm.training.own_parts import OwnLoss

CROSS_ENTROPY, FOCAL = "cross-entropy", "focal"
OF_REGRESSION: Mapping[str, Callable[..., Tensor]] = {
    "mse": mse_loss,
    "mae": l1_loss,
    "huber": huber_loss,
}


def node_losses(logits: Tensor, y: Tensor) -> Tensor:
    """[num_rows] cross-entropy of each row; 0 for unlabelled rows."""
    if y.ndim == 1:
        return cross_entropy(logits, y, ignore_index=-1, reduction="none")
    losses = binary_cross_entropy_with_logits(logits, y.to(logits.dtype), reduction="none")
    return mean_of_known(losses, y)


def mean_of_known(losses: Tensor, y: Tensor) -> Tensor:
    """[num_rows] mean of each row over its known labels; 0 where there are none."""
    is_known = known(y)
    mean = torch.where(is_known, losses, 0.0).mean(dim=1)
    return mean * (y.size(1) / is_known.sum(dim=1).clamp(min=1))  # times one without gaps


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss with its settings, by row. Plain cross-entropy has kernels of its own."""

    kind: str = CROSS_ENTROPY
    class_weight: Tensor | None = None  # see `weights_of`
    smoothing: float = 0.0
    gamma: float = 2.0  # of the focal loss
    delta: float = 1.0  # of the Huber loss
    center: Tensor | None = None  # [targets] mean of a regression's training nodes
    scale: Tensor | None = None  # [targets] their standard deviation
    function: OwnLoss | None = None  # of the user's own: outputs and labels -> a loss for each row

    @property
    def is_plain(self) -> bool:
        """True for cross-entropy without weights and smoothing."""
        usual = self.kind == CROSS_ENTROPY and self.function is None
        return usual and self.class_weight is None and self.smoothing == 0

    def rows(self, logits: Tensor, y: Tensor) -> Tensor:
        """[num_rows] loss of each row; 0 for unlabelled rows."""
        if self.is_plain:
            return node_losses(logits, y)
        if self.function is not None:
            return self._own(self.function, logits, y)
        if self.kind in OF_REGRESSION:
            return self._of_targets(logits, y)
        return self._of_classes(logits, y) if y.ndim == 1 else self._of_labels(logits, y)

    def gradient_norms(self, logits: Tensor, y: Tensor) -> Tensor:
        """[num_rows] norm of each row's loss gradient with respect to the row."""
        if self.is_plain:
            return gradient_norms(logits, y)
        with torch.enable_grad():
            logits = logits.detach().float().requires_grad_()
            (gradient,) = torch.autograd.grad(self.rows(logits, y).sum(), logits)
        norms: Tensor = torch.linalg.vector_norm(gradient, dim=1)
        return norms

    def values(self, outputs: Tensor) -> Tensor:
        """The outputs of a regression on the scale of its targets; others as they are."""
        if self.center is None or self.scale is None:
            return outputs
        return outputs.float() * self.scale + self.center

    def _own(self, function: OwnLoss, outputs: Tensor, y: Tensor) -> Tensor:
        """The user's loss of rows with a label; rows without any are given 0 and left out.

        Single gaps in a row stay -1 or NaN: the function decides what they mean.
        """
        has_label = labelled(y)
        if self.kind in OF_REGRESSION:
            y = y.reshape(y.size(0), -1)  # as the outputs are
        shape = (-1, *[1] * (y.ndim - 1))
        found = function(self.values(outputs), y.where(has_label.view(shape), torch.zeros_like(y)))
        if not isinstance(found, Tensor) or found.shape != y.shape[:1]:
            got = f"shape {list(found.shape)}" if isinstance(found, Tensor) else type(found)
            raise InputError(
                f"the loss returned {got} for {y.size(0)} rows; expected a tensor with a loss for "
                "each row, as of reduction='none'"
            )
        losses, weight = torch.where(has_label, found, 0.0), self.class_weight
        return losses if weight is None else losses * weight[y.clamp(min=0)]

    def _of_targets(self, outputs: Tensor, y: Tensor) -> Tensor:
        assert self.center is not None
        assert self.scale is not None
        y = y.reshape(y.size(0), -1)
        aims = torch.where(known(y), (y - self.center) / self.scale, 0.0)
        more = {"delta": self.delta} if self.kind == "huber" else {}
        return mean_of_known(OF_REGRESSION[self.kind](outputs, aims, reduction="none", **more), y)

    def _of_classes(self, logits: Tensor, y: Tensor) -> Tensor:
        losses = cross_entropy(
            logits, y, ignore_index=-1, reduction="none", label_smoothing=self.smoothing
        )
        if self.kind == FOCAL:
            chance = logits.log_softmax(dim=1).gather(1, y.clamp(min=0).unsqueeze(1)).squeeze(1)
            losses = losses * _missing(chance) ** self.gamma
        return losses if self.class_weight is None else losses * self.class_weight[y.clamp(min=0)]

    def _of_labels(self, logits: Tensor, y: Tensor) -> Tensor:
        has, smooth = y.clamp(min=0).to(logits.dtype), self.smoothing
        aims = has * (1 - smooth) + smooth / 2
        losses = binary_cross_entropy_with_logits(logits, aims, reduction="none")
        if self.kind == FOCAL:
            chance = torch.nn.functional.logsigmoid(logits * (2 * has - 1))
            losses = losses * _missing(chance) ** self.gamma
        if self.class_weight is not None:
            losses = losses * torch.where(y > 0, self.class_weight[1], self.class_weight[0])
        return mean_of_known(losses, y)


def gradient_norms(logits: Tensor, y: Tensor) -> Tensor:
    """[num_rows] norm of the gradient of each row's cross-entropy with respect to the row."""
    if y.ndim == 1:
        is_known, actual = (y >= 0).unsqueeze(1), one_hot(y.clamp(min=0), logits.size(1))
        gradient = logits.softmax(dim=1) - actual
    else:
        is_known = y >= 0
        gradient = (logits.sigmoid() - y) / is_known.sum(dim=1, keepdim=True).clamp(min=1)
    norms: Tensor = torch.linalg.vector_norm(gradient * is_known, dim=1)
    return norms


def _missing(log_chance: Tensor) -> Tensor:
    """1 - exp(log_chance), kept above zero: a power below 1 has no slope there."""
    tiny = torch.finfo(log_chance.dtype).tiny
    return (-torch.expm1(log_chance)).clamp(min=tiny)
