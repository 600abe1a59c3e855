"""The columns of predictions and embeddings: ids, names of classes, the truth and the split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from graphfm.data.graph import SPLITS, Graph
from graphfm.data.graph.labels import labelled
from graphfm.errors import InputError
from graphfm.metrics.names import LABELS, REGRESSION
from graphfm.runs.model import Model
from graphfm.runs.result_files import Array, Columns

MARK = "|"  # between the labels of one node
LAST = ("truth", "split")  # columns that follow those of classes
Named = list[tuple[str, Array]]  # columns, of which two may have the same name


@dataclass(frozen=True, kw_only=True)
class NodeRows:
    """The nodes that a table has rows of; `ids` None stands for all of them."""

    graph: Graph
    ids: Tensor | None

    def numbers(self, start: int, end: int) -> Tensor:
        """The numbers of the nodes from row `start` to row `end`."""
        if self.ids is not None:
            return self.ids[start:end]
        return torch.arange(start, end, device=self.graph.device)

    def named(self, numbers: Tensor) -> Named:
        """The columns node and name."""
        numbers, names = numbers.cpu(), self.graph.node_names
        texts: Iterable[str | None]
        if names is None:
            texts = [None] * numbers.numel()
        elif self.ids is None and numbers.numel():  # a range, which is read at once
            texts = names[int(numbers[0]) : int(numbers[-1]) + 1]
        else:
            texts = [names[number] for number in numbers.tolist()]
        return [("node", numbers.numpy()), ("name", as_texts(texts))]


class EmbeddingTable(NodeRows):
    """node, name, e0, e1, ...: rows of a layer."""

    def columns(self, rows: Tensor, start: int) -> Columns:
        """The columns of a piece of the rows, which begins with row `start`."""
        numbers = self.numbers(start, start + rows.size(0))
        values = [(f"e{place}", column) for place, column in enumerate(_turned(rows))]
        return distinct([*self.named(numbers), *values])


@dataclass(frozen=True, kw_only=True)
class PredictionTable(NodeRows):
    """node, name, class, probability, and what is known; `top` and `every` add columns.

    `top` is how many of the best classes are named, and `every` asks for all probabilities, in
    columns with the names of the classes. A regression has a column for each target instead.
    """

    model: Model
    top: int | None = None
    every: bool = False

    def __post_init__(self) -> None:
        model, top = self.model, self.top
        if model.task == REGRESSION and (top is not None or self.every):
            raise InputError("a regression predicts values, not classes; ask for no probabilities")
        if top is not None and not 1 <= top <= model.num_classes:
            raise InputError(
                f"top is {top}; expected 1 to {model.num_classes}, the number of classes"
            )

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of the classes, the labels or the targets."""
        number = self.model.num_classes
        if self.model.class_names is not None:
            return self.model.class_names
        if self.model.task != REGRESSION:
            return [str(place) for place in range(number)]
        return ["value"] if number == 1 else [f"value_{place}" for place in range(number)]

    @cached_property
    def has_splits(self) -> bool:
        return any(bool(self.graph.mask(split).any()) for split in SPLITS)

    def columns(self, rows: Tensor, start: int) -> Columns:
        """The columns of a piece of the rows, which begins with row `start`."""
        numbers = self.numbers(start, start + rows.size(0))
        every = list(zip(self.names, _turned(rows), strict=True))
        found = every
        if self.model.task != REGRESSION:
            found = self._best(rows) + (every if self.every else [])
        return distinct([*self.named(numbers), *found, *self._known(numbers)])

    def _best(self, rows: Tensor) -> Named:
        """The best classes with their probabilities, or all labels above one half."""
        names = as_texts(self.names)
        if self.model.task == LABELS and self.top is None:
            chosen = rows > 0.5
            chances = as_texts(f"{chance:.6f}" for chance in rows[chosen].tolist())
            labels = names[chosen.nonzero()[:, 1].numpy()]
            counts = chosen.sum(dim=1)
            return [("class", _joined(labels, counts)), ("probability", _joined(chances, counts))]
        best = rows.sort(dim=1, descending=True, stable=True) if self.top else rows.max(1, True)
        columns: Named = []
        for place in range(self.top or 1):
            after = f"_{place + 1}" if place else ""
            columns.append((f"class{after}", names[best.indices[:, place].numpy()]))
            columns.append((f"probability{after}", best.values[:, place].contiguous().numpy()))
        return columns

    def _known(self, numbers: Tensor) -> Named:
        """The columns truth (one per target of a regression) and split, where there are any."""
        columns: Named = []
        if self.graph.num_classes:
            columns += truth(self.graph, self.graph.y[numbers].cpu())
        if self.has_splits:
            splits = as_texts([None] * numbers.numel())
            for split in SPLITS:
                splits[self.graph.mask(split)[numbers].cpu().numpy()] = split
            columns.append(("split", splits))
        return columns


def truth(graph: Graph, y: Tensor) -> Named:
    """The labels of some nodes by name; None (NaN in a regression) where they are not known."""
    names = graph.class_names or [str(place) for place in range(graph.num_classes)]
    if graph.task == REGRESSION:
        if y.ndim == 1 or y.size(1) == 1:
            return [("truth", y.reshape(-1).numpy())]
        columns = zip(names, _turned(y), strict=True)
        return [(f"truth_{name}", column) for name, column in columns]
    if graph.task == LABELS:
        own = y == 1
        texts = _joined(as_texts(names)[own.nonzero()[:, 1].numpy()], own.sum(dim=1))
    else:
        texts = as_texts(names)[y.clamp(min=0).numpy()]
    texts[~labelled(y).numpy()] = None
    return [("truth", texts)]


def as_texts(texts: Iterable[str | None]) -> Array:
    """Texts as an array of objects, which DuckDB reads as texts."""
    return np.array([*texts], dtype=object)


def distinct(columns: Named) -> Columns:
    """Columns by name. A name that is taken, in whichever case, is followed by a number.

    The columns truth and split, which come last, keep their names whatever a class is called.
    """
    own = {name: place for place, (name, _) in enumerate(columns) if name in LAST}
    found, taken = Columns(), set(own)
    for place, (name, values) in enumerate(columns):
        number, free = 1, name
        while free.casefold() in taken and own.get(free) != place:
            number += 1
            free = f"{name}_{number}"
        taken.add(free.casefold())
        found[free] = values
    return found


def _turned(rows: Tensor) -> Array:
    """The columns of rows, each contiguous."""
    turned: Array = rows.t().contiguous().numpy()
    return turned


def _joined(texts: Array, counts: Tensor) -> Array:
    """Join the texts of each row, of which there are `counts`."""
    bounds = [0, *counts.cumsum(0).tolist()]
    listed = texts.tolist()
    return as_texts(MARK.join(listed[begin:end]) for begin, end in pairwise(bounds))
