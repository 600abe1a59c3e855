"""The loss (cross-entropy or BCE) and the score (micro-F1)."""

from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, one_hot

from graphfm.data.graph import Graph
from graphfm.kernels.cross_entropy import mean_cross_entropy, number_marked


def node_losses(logits: Tensor, y: Tensor) -> Tensor:
    """[num_rows] loss of each row; 0 for unlabelled rows."""
    if y.ndim == 1:
        return cross_entropy(logits, y, ignore_index=-1, reduction="none")
    losses = binary_cross_entropy_with_logits(logits, y.to(logits.dtype), reduction="none")
    return (losses * (y >= 0)).mean(dim=1)


def weighted_loss(logits: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """The weighted sum of the rows' losses."""
    return (node_losses(logits, y) * weight).sum()


class Objective:
    """The loss of a batch: the mean over its training nodes, or a sum with given weights."""

    def __init__(
        self, y: Tensor, train_mask: Tensor, ids: Tensor, loss_weight: Tensor | None
    ) -> None:
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
        elif self.y.ndim == 1:
            return mean_cross_entropy(
                logits, self.ids, self.y, self.train_mask, self.weight, totals
            )
        else:
            weight = as_mean(self.trains)
        loss = weighted_loss(logits.float(), self.y[self.ids], weight)
        totals[0].addcmul_(loss.detach(), self.weight)
        totals[1].add_(self.weight)
        return loss


def gradient_norms(logits: Tensor, y: Tensor) -> Tensor:
    """[num_rows] norm of each row's loss gradient with respect to the row."""
    if y.ndim == 1:
        known, actual = (y >= 0).unsqueeze(1), one_hot(y.clamp(min=0), logits.size(1))
        gradient = logits.softmax(dim=1) - actual
    else:
        known, gradient = y >= 0, (logits.sigmoid() - y) / y.size(1)
    norms: Tensor = torch.linalg.vector_norm(gradient * known, dim=1)
    return norms


def as_mean(weight: Tensor) -> Tensor:
    """Scale weights to a sum of one; zeros stay zeros. Shapes do not depend on values."""
    return weight / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)


def micro_f1(logits: Tensor, y: Tensor) -> float:
    """Micro-averaged F1 of labelled rows. With one class per node that is accuracy."""
    if y.ndim == 1:
        return float((logits.argmax(dim=1) == y).float().mean())
    predicted, actual = logits > 0, y > 0
    agreed = int((predicted & actual).sum())
    claimed = int(predicted.sum()) + int(actual.sum())
    return 2 * agreed / claimed if claimed else 1.0


def scores(logits: Tensor, graph: Graph, splits: tuple[str, ...]) -> dict[str, float | None]:
    """Micro-F1 of each split; None where a split is empty."""
    result: dict[str, float | None] = {}
    for split in splits:
        mask = graph.mask(split)
        result[split] = micro_f1(logits[mask], graph.y[mask]) if bool(mask.any()) else None
    return result


def probabilities(logits: Tensor, multi_label: bool) -> Tensor:
    """Softmax over classes, or one sigmoid per class."""
    return logits.sigmoid() if multi_label else logits.softmax(dim=1)
