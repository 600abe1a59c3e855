"""Where a model is right and wrong: by class, by pair of classes, by certainty, by degree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphfm.metrics.counting import Counts
from graphfm.metrics.names import LABELS, REGRESSION, names_for
from graphfm.metrics.scores import LAST, all_scores

BINS = 10  # of probability, each of the same width
MOST_CONFUSED = 1000  # classes of which every pair is counted
DEGREES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # where a bucket begins


def report(
    task: str, outputs: Tensor, y: Tensor, degree: Tensor, positive: int = LAST
) -> dict[str, Any]:
    """All parts that exist for a task, as JSON values. Nodes without a label are left out before.

    `outputs` are logits of classes, or values of a regression.
    """
    degrees = by_degree(task, outputs, y, degree, positive)
    if task == REGRESSION:
        return {"task": task, "targets": by_target(outputs, y), "degrees": degrees}
    found: dict[str, Any] = {"task": task, "classes": by_class(task, outputs, y)}
    if task != LABELS and outputs.size(1) <= MOST_CONFUSED:
        found["confusion"] = confusion(outputs, y)
    return {**found, "calibration": calibration(task, outputs, y), "degrees": degrees}


def by_class(task: str, logits: Tensor, y: Tensor) -> list[dict[str, float]]:
    """Precision, recall and F1 of each class or label, and the nodes that have it (support)."""
    if task == LABELS:
        counts = Counts.of_labels(logits > 0, y)
    else:
        counts = Counts.of_classes(logits.argmax(dim=1), y, logits.size(1))
    numbers = (counts.precision, counts.recall, counts.f1, counts.actual, counts.claimed)
    rows = zip(*(part.tolist() for part in numbers), strict=True)
    return [
        {"precision": precision, "recall": recall, "f1": f1, "support": int(support),
         "predicted": int(predicted)}
        for precision, recall, f1, support, predicted in rows
    ]  # fmt: skip


def by_target(values: Tensor, y: Tensor) -> list[dict[str, float | None]]:
    """R2, MAE and RMSE of each target of a regression, and its known nodes (support)."""
    y = y.reshape(y.size(0), -1)
    return [
        {
            **all_scores(names_for(REGRESSION), REGRESSION, values[:, [t]], y[:, t]),
            "support": int((~y[:, t].isnan()).sum()),
        }
        for t in range(y.size(1))
    ]


def confusion(logits: Tensor, y: Tensor) -> list[list[int]]:
    """How many nodes of each class (row) were predicted as each class (column)."""
    number = logits.size(1)
    pairs = torch.bincount(y * number + logits.argmax(dim=1), minlength=number * number)
    table: list[list[int]] = pairs.view(number, number).tolist()
    return table


def calibration(task: str, logits: Tensor, y: Tensor) -> dict[str, Any]:
    """How often predictions of a given certainty are right, in bins of equal width.

    The certainty is the probability of the predicted class; of labels, of having each label. The
    expected calibration error (`ece`) is the mean distance between the two, weighted by the bins.
    """
    if task == LABELS:
        known = y >= 0
        chance, right = logits.double().sigmoid()[known], (y > 0)[known]
    else:
        chance, predicted = logits.double().softmax(dim=1).max(dim=1)
        right = predicted == y
    # A certainty on an edge belongs to the bin below it, as in the usual definition.
    place = (torch.ceil(chance * BINS) - 1).clamp(0, BINS - 1).long()
    count = torch.bincount(place, minlength=BINS)
    certainty = torch.bincount(place, weights=chance, minlength=BINS) / count.clamp(min=1)
    accuracy = torch.bincount(place, weights=right.double(), minlength=BINS) / count.clamp(min=1)
    error = float(((certainty - accuracy).abs() * count).sum() / count.sum().clamp(min=1))
    columns = zip(count.tolist(), certainty.tolist(), accuracy.tolist(), strict=True)
    bins = [
        {"from": n / BINS, "to": (n + 1) / BINS, "nodes": number,
         "certainty": mean if number else None, "accuracy": share if number else None}
        for n, (number, mean, share) in enumerate(columns)
    ]  # fmt: skip
    return {"ece": error, "bins": bins}


def by_degree(
    task: str, outputs: Tensor, y: Tensor, degree: Tensor, positive: int = LAST
) -> list[dict[str, Any]]:
    """Every metric for nodes with few and with many neighbours; buckets without nodes are left out.

    Each bucket but the first two is twice as wide as the one before it.
    """
    rows = list[dict[str, Any]]()
    for number, low in enumerate(DEGREES):
        high = DEGREES[number + 1] - 1 if number + 1 < len(DEGREES) else None
        inside = (degree >= low) & (degree <= (high if high is not None else degree.max()))
        if not bool(inside.any()):
            continue
        metrics = all_scores(names_for(task), task, outputs[inside], y[inside], positive)
        rows.append({"from": low, "to": high, "nodes": int(inside.sum()), **metrics})
    return rows
