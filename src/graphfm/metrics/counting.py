"""Metrics that count right and wrong predictions: micro- and macro-F1, balanced accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Counts:
    """For each class: nodes found (right), claimed (predicted) and actual (true), as float64."""

    right: Tensor
    claimed: Tensor
    actual: Tensor

    @classmethod
    def of_classes(cls, predicted: Tensor, y: Tensor, num_classes: int) -> Counts:
        """Of one class per node; every `y` is known."""
        right = torch.bincount(y[predicted == y], minlength=num_classes)
        claimed = torch.bincount(predicted, minlength=num_classes)
        actual = torch.bincount(y, minlength=num_classes)
        return cls(right.double(), claimed.double(), actual.double())

    @classmethod
    def of_labels(cls, predicted: Tensor, y: Tensor) -> Counts:
        """Of many labels per node; -1 is not known and counts nowhere."""
        claimed, actual = predicted & (y >= 0), y > 0
        sums = [part.sum(dim=0).double() for part in (claimed & actual, claimed, actual)]
        return cls(*sums)

    @property
    def precision(self) -> Tensor:
        """Right among claimed; 0 where nothing was claimed."""
        return self.right / self.claimed.clamp(min=1)

    @property
    def recall(self) -> Tensor:
        """Right among actual; 0 where there are none."""
        return self.right / self.actual.clamp(min=1)

    @property
    def f1(self) -> Tensor:
        """The harmonic mean of both; 0 for a class that is neither there nor claimed."""
        return 2 * self.right / (self.claimed + self.actual).clamp(min=1)


def macro_f1_of_classes(counts: Counts) -> float:
    """The mean F1 of the classes that occur among the nodes or the predictions."""
    return float(counts.f1[(counts.claimed + counts.actual) > 0].mean())


def macro_f1_of_labels(counts: Counts) -> float:
    """The mean F1 of all labels; 0 for one that is neither there nor claimed."""
    return float(counts.f1.mean())


def balanced_accuracy_of_classes(counts: Counts) -> float:
    """The mean recall of the classes that occur."""
    return float(counts.recall[counts.actual > 0].mean())


def balanced_accuracy_of_labels(predicted: Tensor, y: Tensor) -> float | None:
    """The mean over labels of the mean recall of having and of not having the label.

    Of a label that all known nodes have, or none, only the one recall counts; a label that is known
    of no node does not count. None if that is so of every label.
    """
    values = list[float]()
    for column in range(y.size(1)):
        known = y[:, column] >= 0
        actual, claimed = y[known, column] > 0, predicted[known, column]
        recalls = [
            float((claimed == side)[actual == side].double().mean())
            for side in (False, True)
            if bool((actual == side).any())
        ]
        values += [sum(recalls) / len(recalls)] if recalls else []
    return sum(values) / len(values) if values else None
