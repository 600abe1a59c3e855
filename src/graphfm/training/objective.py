"""The loss of a batch, and probabilities."""

from functools import cached_property

import torch
from torch import Tensor

from graphfm.kernels.cross_entropy import mean_cross_entropy, number_marked
from graphfm.training.losses import Loss

PLAIN = Loss()


def weighted_loss(logits: Tensor, y: Tensor, weight: Tensor, loss: Loss = PLAIN) -> Tensor:
    """The weighted sum of the rows' losses."""
    return (loss.rows(logits, y) * weight).sum()


class Objective:
    """The loss of a batch: the mean over its training nodes, or a sum with given weights."""

    def __init__(
        self,
        y: Tensor,
        train_mask: Tensor,
        ids: Tensor,
        loss_weight: Tensor | None,
        loss: Loss = PLAIN,
    ) -> None:
        self.loss = loss
        self.y, self.train_mask, self.ids, self.loss_weight = y, train_mask, ids, loss_weight
        # The weight of this loss in the mean over an epoch's batches. With given weights, each
        # batch's loss estimates the mean over all training nodes, so all batches count alike.
        self.weight: Tensor
        if loss_weight is None:
            self.weight = number_marked(ids, train_mask)
        else:
            self.weight = torch.ones((), device=ids.device)

    @cached_property
    def trains(self) -> Tensor:
        return self.train_mask[self.ids].float()

    def __call__(self, logits: Tensor, totals: Tensor) -> Tensor:
        """The loss. Adds loss * weight to `totals[0]` and the weight to `totals[1]`."""
        if self.loss_weight is not None:
            weight = self.trains * self.loss_weight
        elif self.y.ndim == 1 and self.loss.is_plain:
            return mean_cross_entropy(
                logits, self.ids, self.y, self.train_mask, self.weight, totals
            )
        else:
            weight = as_mean(self.trains)
        loss = weighted_loss(logits.float(), self.y[self.ids], weight, self.loss)
        totals[0].addcmul_(loss.detach(), self.weight)
        totals[1].add_(self.weight)
        return loss


def as_mean(weight: Tensor) -> Tensor:
    """Scale weights to a sum of one; zeros stay zeros. Shapes do not depend on values."""
    return weight / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)


def probabilities(logits: Tensor, multi_label: bool) -> Tensor:
    """Softmax over classes, or one sigmoid per class."""
    return logits.sigmoid() if multi_label else logits.softmax(dim=1)
