"""Labels: classes, many labels per node, or the numbers of a regression, with gaps."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphfm.data.graph.conversion import MOST_CLASSES, as_count, as_mask, as_tensor, describe
from graphfm.errors import InputError, known_name
from graphfm.metrics.names import CLASSES, LABELS, REGRESSION

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

log = logging.getLogger("graphfm")
MASKS = ("train_mask", "val_mask", "test_mask")
TASKS = (CLASSES, REGRESSION)  # what y may be said to hold; its shape tells classes from labels


def as_labels(
    value: Any, x: Tensor, num_classes: int | None, class_names: tuple[str, ...] | None,
    task: str | None = None,
) -> tuple[Tensor, int]:  # fmt: skip
    """Return labels in the type in which they are stored, and the number of classes or targets.

    Floating-point values are a regression, unless all that are known are class numbers.
    """
    num_nodes = x.size(0)
    if task is not None:
        known_name("task", str(task), TASKS)
    if num_classes is not None:
        num_classes = as_count("num_classes", num_classes)
    if num_classes is None and class_names is not None:
        num_classes = len(class_names)
    if value is None:
        return torch.full((num_nodes,), -1, device=x.device), num_classes or 0
    y = as_tensor("y", value)
    if y.shape == (num_nodes, 1):
        y = y.squeeze(1)
    if y.ndim not in (1, 2) or y.size(0) != num_nodes or y.numel() == 0:
        raise InputError(
            f"y has shape {tuple(y.shape)}; expected [{num_nodes}], one class per node, "
            f"[{num_nodes}, num_classes] of 0 and 1 if a node can have many, or numbers of either "
            "shape for a regression"
        )
    if task == REGRESSION or (task is None and _holds_amounts(y)):
        return _as_targets(y, num_classes)
    return _as_classes(y, num_classes)


def _holds_amounts(y: Tensor) -> bool:
    """True for floating-point values that are not the numbers of classes."""
    if not y.is_floating_point():
        return False
    largest = 1 if y.ndim == 2 else MOST_CLASSES
    return not bool((((y == y.round()) & (y >= -1) & (y <= largest)) | y.isnan()).all())


def _as_targets(y: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
    """The numbers of a regression in float32; NaN stays, and means unknown."""
    if bool(y.isinf().any()):
        raise InputError("y holds infinite values; expected finite numbers, NaN for unknown ones")
    y = y.to(torch.float32)
    if bool(y.isinf().any()):
        raise InputError("y holds numbers that float32 cannot; expected at most 3e38; scale them")
    targets = 1 if y.ndim == 1 else y.size(1)
    return y, targets if num_classes is None else num_classes


def _as_classes(y: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
    if y.is_floating_point():
        y = torch.where(y.isnan(), -1.0, y)  # as tables write a missing number
    if y.is_floating_point() and not bool(((y == y.round()) & y.isfinite()).all()):
        raise InputError(
            "y holds values that are not whole numbers; expected class numbers, -1 for unlabelled "
            "(the numbers of a regression: leave out task)"
        )
    if y.ndim == 1:
        y = y.long()
        if num_classes is None and int(y.max()) >= MOST_CLASSES:
            raise InputError(
                f"y holds label {int(y.max())}; expected class numbers below {MOST_CLASSES}, or "
                "task='regression'"
            )
        return y, int(y.max()) + 1 if num_classes is None else num_classes
    if y.dtype in (torch.uint8, torch.bool):
        y = y.to(torch.int16)  # so that -1 can be told from 255
    if not bool(((y >= -1) & (y <= 1)).all()):
        raise InputError(
            "multi-label y holds values other than 0, 1 and -1 (for unlabelled); if they are "
            "amounts, give task='regression'"
        )
    return y.to(torch.int8), y.size(1) if num_classes is None else num_classes


def task_of(y: Tensor) -> str:
    """What y asks for: one of the classes, any of the labels, or numbers."""
    if y.is_floating_point():
        return REGRESSION
    return LABELS if y.ndim == 2 else CLASSES


def known(y: Tensor) -> Tensor:
    """True for each label that is known, in the shape of `y`."""
    return ~y.isnan() if y.is_floating_point() else y >= 0


def labelled(y: Tensor) -> Tensor:
    """[num_nodes] True for nodes of which at least one label is known."""
    found = known(y)
    return found if y.ndim == 1 else found.any(dim=1)


def as_masks(given: Mapping[str, Any], x: Tensor, y: Tensor, num_classes: int) -> dict[str, Any]:
    """The masks without nodes that have no label: they are neither learned from nor scored."""
    masks, has_label = dict[str, Tensor](), labelled(y)
    for name, value in given.items():
        mask = as_mask(name, value, x)
        if num_classes == 0:  # the checks refuse a mask where there are no labels at all
            masks[name] = mask
            continue
        masks[name] = mask & has_label
        if missing := int((mask & ~has_label).sum()):
            log.warning("%s: %d nodes without a label are left out of it", name, missing)
    return masks


def in_words(graph: Graph) -> str:
    """7 classes, 50 labels or 1 target."""
    word = {CLASSES: "classes", LABELS: "labels", REGRESSION: "targets"}[graph.task]
    number = graph.num_classes
    return f"{number} {'target' if graph.task == REGRESSION and number == 1 else word}"


def check_labels(graph: Graph) -> None:
    """Refuse labels of a wrong type, shape or range."""
    y, n = graph.y, graph.num_nodes
    if graph.task == REGRESSION:
        shape = [n] if graph.num_classes == 1 else [n, graph.num_classes]
        if list(y.shape) != shape or y.dtype != torch.float32:
            raise InputError(f"y is {describe(y)}; expected float32 {shape}")
        if bool(y.isinf().any()):
            raise InputError("y holds infinite values; expected finite numbers, NaN for unknown")
        return
    if graph.multi_label:
        if y.shape != (n, graph.num_classes) or y.dtype != torch.int8:
            raise InputError(f"y is {describe(y)}; expected int8 [{n}, {graph.num_classes}]")
        return
    if y.shape != (n,) or y.dtype != torch.int64:
        raise InputError(f"y is {describe(y)}; expected int64 [{n}]")
    low, high = (int(v) for v in y.aminmax())
    if low < -1 or high >= graph.num_classes:
        raise InputError(
            f"y holds label {low if low < -1 else high}; expected 0 to {graph.num_classes - 1}, "
            "or -1 for unlabelled"
        )
