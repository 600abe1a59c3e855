"""Draws with unequal probabilities, and the factors that make sums over draws unbiased."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from graphfm.data.matrix.adjacency import Adjacency

FINE = 1 << 31  # the integer that stands for the largest probability
CHUNK = 1 << 24  # edges processed at a time


class Chances:
    """Integers in proportion to probabilities, prepared for draws.

    Sums of integers do not depend on the order of addition, so draws are the same on any device.
    """

    def __init__(self, chances: Tensor) -> None:
        self.chances, self.upto = chances, chances.cumsum(0)
        self.num_possible = int((chances > 0).sum())
        self.total = int(self.upto[-1]) if chances.numel() else 0

    def draw(self, number: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw `number` times independently: the distinct items drawn (ascending), their factors.

        The factor is count / (number * probability), so that a weighted sum over the drawn items
        is an unbiased estimate of the sum over all. If there are at most `number` items, all are
        taken.
        """
        if self.num_possible <= number:
            ids = self.chances.nonzero().squeeze(1)
            return ids, torch.ones(ids.numel(), device=ids.device)
        dice = torch.rand(number, generator=rng, device=rng.device, dtype=torch.float64)
        ids = torch.searchsorted(self.upto, (dice * self.total).long(), right=True)
        ids, count = torch.unique(ids.clamp(max=self.chances.numel() - 1), return_counts=True)
        return ids, (count * (self.total / (number * self.chances[ids].double()))).float()


class Inclusion:
    """Systematic sampling: every node has its own probability, the sample size is nearly fixed.

    The nodes lie end to end in random order, each as long as its probability. Starting at a random
    point below 1, the node at every whole step is taken.
    """

    def __init__(self, probability: Tensor, rng: torch.Generator) -> None:
        self.order = torch.randperm(probability.numel(), generator=rng, device=rng.device)
        self.upto = (probability[self.order].double() * FINE).round().long().cumsum(0)
        self.number = -(-int(self.upto[-1]) // FINE)

    def draw(self, rng: torch.Generator) -> Tensor:
        """Draw a sample: the indices of the nodes in it."""
        start = torch.randint(FINE, (1,), generator=rng, device=rng.device)
        ticks = start + torch.arange(self.number, device=rng.device) * FINE
        index = torch.searchsorted(self.upto, ticks, right=True)
        return self.order[index[ticks < self.upto[-1]]]


def as_chances(weight: Tensor) -> Tensor:
    """Integers in proportion to non-negative weights; positive weights stay positive."""
    weight = weight.double()
    if weight.numel() == 0:
        return weight.long()
    return (weight * (FINE / weight.max().clamp(min=1e-200))).ceil().long()


def column_chances(adjacency: Adjacency) -> Tensor:
    """[num_nodes] integers in proportion to the squared norms of the columns, without diagonal."""
    graph = adjacency.graph
    largest = torch.zeros((), dtype=torch.float64, device=graph.device)
    for _, squares in _squares(adjacency):
        largest = torch.maximum(largest, squares.max())
    total = torch.zeros(graph.num_nodes, dtype=torch.int64, device=graph.device)
    for sources, squares in _squares(adjacency):
        total.index_add_(0, sources, (squares * (FINE / largest.clamp(min=1e-200))).ceil().long())
    return total


def _squares(adjacency: Adjacency) -> Iterator[tuple[Tensor, Tensor]]:
    """Sources of the edges and squares of their weights, a chunk at a time."""
    graph = adjacency.graph
    for first in range(0, graph.num_edges, CHUNK):
        position = torch.arange(first, min(first + CHUNK, graph.num_edges), device=graph.device)
        targets = torch.searchsorted(graph.indptr, position, right=True) - 1
        sources = graph.indices[position].long()
        yield sources, adjacency.weights(targets, sources, position).double().square()


def inclusion(size: Tensor, number: int) -> Tensor:
    """Probabilities min(1, size / t), with t such that they add up to `number`."""
    if size.numel() <= number:
        return torch.ones_like(size)
    largest = size.sort(descending=True).values
    rest = largest.flip(0).cumsum(0).flip(0)  # sum of each and all smaller ones
    sure = torch.arange(size.numel(), device=size.device)  # this many have probability 1
    threshold = rest / (number - sure).clamp(min=1)
    first = int(((largest <= threshold) & (sure < number)).long().argmax())
    return (size / threshold[first]).clamp(max=1.0)
