"""What is asked of a graph's nodes: the loss to train by and the metrics to judge by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from graphfm.data.graph import Graph
from graphfm.errors import InputError, known_name
from graphfm.metrics.names import AUTO, LABELS, REGRESSION, names_for, title
from graphfm.metrics.scores import LAST, Metrics, all_scores, is_defined, score
from graphfm.options import one_of
from graphfm.training.class_weights import weights_of
from graphfm.training.losses import CROSS_ENTROPY, FOCAL, OF_REGRESSION, Loss
from graphfm.training.own_parts import OwnLoss
from graphfm.training.question_settings import QuestionSettings


@dataclass(frozen=True, eq=False)
class Question:
    """The task of a graph with the loss and the metric that the settings choose for it."""

    task: str
    metric: str
    loss: Loss
    positive: int = LAST

    @classmethod
    def of(cls, graph: Graph, settings: QuestionSettings) -> Question:
        """Settle the question; refuses a loss or metric that the graph's labels do not allow."""
        metric = names_for(graph.task)[0] if settings.metric == AUTO else settings.metric
        _check_metric(graph, metric)
        positive = _positive(graph, settings.positive)
        y = graph.y[graph.val_mask]
        if not is_defined(metric, graph.task, y, graph.num_classes, positive):
            others = [
                name for name in names_for(graph.task)
                if is_defined(name, graph.task, y, graph.num_classes, positive)
            ]  # fmt: skip
            raise InputError(
                f"{title(metric)} is not defined on the validation nodes: {_why(metric)}; choose "
                f"the best epoch by another metric: {one_of(others)}"
            )
        return cls(graph.task, metric, _loss(graph, settings), positive)

    def with_loss(self, function: OwnLoss | None) -> Question:
        """The same question, with a loss of the user's own."""
        if function is None:
            return self
        if self.task == LABELS and self.loss.class_weight is not None:
            raise InputError(
                "class_weights weigh single labels, and a loss of your own has one number for all "
                "labels of a node; leave class_weights out, and weigh labels in the loss"
            )
        return replace(self, loss=replace(self.loss, function=function))

    def positive_name(self, graph: Graph) -> str | None:
        """The class that rankings look for, where there are two; None: there is no such class."""
        if graph.task != "classes" or graph.num_classes != 2:
            return None
        return (graph.class_names or ("0", "1"))[self.positive]

    @property
    def names(self) -> tuple[str, ...]:
        """All metrics of the task."""
        return names_for(self.task)

    def to_json(self) -> dict[str, Any]:
        """What a model needs to know to judge and scale its outputs, as JSON values."""
        units = {"center": self.loss.center, "scale": self.loss.scale}
        known = {name: None if t is None else tuple(t.tolist()) for name, t in units.items()}
        return {"metric": self.metric, "positive": self.positive, **known}

    def score(self, outputs: Tensor, y: Tensor) -> float | None:
        """The metric by which epochs are chosen; None without nodes or where it is undefined."""
        return score(self.metric, self.task, self.loss.values(outputs), y, self.positive)

    def all_scores(self, outputs: Tensor, y: Tensor) -> Metrics:
        """Every metric of the task, by name."""
        return all_scores(self.names, self.task, self.loss.values(outputs), y, self.positive)


def _check_metric(graph: Graph, metric: str) -> None:
    names = names_for(graph.task)
    if metric not in names:
        kind = "a regression" if graph.task == REGRESSION else "classes"
        raise InputError(f"metric is {metric}, but y holds {kind}; expected {one_of(names)}")


def _why(metric: str) -> str:
    if metric == "r2":
        return "all have the same target, or there is but one"
    if metric == "average-precision":
        return "none of them is positive"
    return "they are all positive, or all negative"


def _positive(graph: Graph, name: str | None) -> int:
    """The number of the positive class of two: the one that is named, or else the rarer one."""
    if name is None:
        if graph.task != "classes" or graph.num_classes != 2:
            return LAST
        counts = torch.bincount(graph.y[graph.train_mask].clamp(min=0), minlength=2)
        return int(counts[1] <= counts[0])
    if graph.task != "classes" or graph.num_classes != 2:
        raise InputError(
            f"positive is {name}, but the graph does not have two classes; leave it out"
        )
    names = graph.class_names or ("0", "1")
    known_name("class", name, names)
    return names.index(name)


def _loss(graph: Graph, settings: QuestionSettings) -> Loss:
    regression = graph.task == REGRESSION
    usual = "mse" if regression else CROSS_ENTROPY
    kind = usual if settings.loss == AUTO else settings.loss
    allowed = tuple(OF_REGRESSION) if regression else (CROSS_ENTROPY, FOCAL)
    if kind not in allowed:
        what = "a regression" if regression else "classes"
        raise InputError(f"loss is {kind}, but y holds {what}; expected {one_of(allowed)}")
    if not regression:
        given = settings.class_weights
        weights = None if given is None else weights_of(graph, given)
        return Loss(kind, weights, settings.label_smoothing, settings.focal_gamma)
    for name in ("class_weights", "label_smoothing"):
        if getattr(settings, name):
            raise InputError(f"{name} is for classes, but y holds a regression; leave it out")
    center, scale = standardised(graph)
    return Loss(kind, delta=settings.huber_delta, center=center, scale=scale)


def standardised(graph: Graph) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each target over the training nodes that have it.

    A network learns targets in these units: its first outputs are near zero, whatever the unit of
    the target. A target without known training nodes keeps 0 and 1.
    """
    y = graph.y[graph.train_mask].reshape(int(graph.train_mask.sum()), -1).double()
    is_known = ~y.isnan()
    number = is_known.sum(dim=0).clamp(min=1)
    center = torch.where(is_known, y, 0.0).sum(dim=0) / number
    spread = (torch.where(is_known, y - center, 0.0).square().sum(dim=0) / number).sqrt()
    scale = torch.where(spread > 1e-12 * center.abs(), spread, 1.0)
    return center.float(), scale.clamp(min=1e-30).float()
