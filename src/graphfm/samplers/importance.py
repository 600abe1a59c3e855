"""Draws with unequal probabilities, and what they must be multiplied by to be right on average."""

import torch
from torch import Tensor

from graphfm.batch import offsets
from graphfm.data.adjacency import Adjacency

FINE = 1 << 31  # steps from zero to the largest chance


def column_chances(adjacency: Adjacency) -> Tensor:
    """[num_nodes] chances in proportion to the squared norms of the matrix's columns."""
    graph = adjacency.graph
    ids = torch.arange(graph.num_nodes, device=graph.device)
    source, reader, position = graph.out_edges_of(ids)
    weight = adjacency.weights(reader, source, position).double()
    first = offsets(torch.bincount(source, minlength=graph.num_nodes))
    return as_chances(torch.segment_reduce(weight.square(), "sum", offsets=first, initial=0))


def as_chances(weight: Tensor) -> Tensor:
    """Whole numbers in proportion to weights of 0 or more.

    Sums of them do not depend on the order of adding, on any device. What is above zero stays so.
    """
    weight = weight.double()
    return (weight * (FINE / weight.max().clamp(min=1e-200))).ceil().long()


def draw(chances: Tensor, number: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Of `number` independent draws, what was drawn (ascending) and how to weigh it.

    The factor is count / (number * probability): weighted so, a sum over what was drawn is on
    average the sum over all. If there are no more than `number` to draw from, all are taken.
    """
    possible = chances.nonzero().squeeze(1)
    if possible.numel() <= number:
        return possible, torch.ones(possible.numel(), device=chances.device)
    upto = chances.cumsum(0)
    dice = torch.rand(number, generator=rng, device=rng.device, dtype=torch.float64)
    ids = torch.searchsorted(upto, (dice * upto[-1]).long(), right=True)
    ids, count = torch.unique(ids.clamp(max=chances.numel() - 1), return_counts=True)
    return ids, (count * (upto[-1] / (number * chances[ids].double()))).float()


def inclusion(size: Tensor, number: int) -> Tensor:
    """Probabilities min(1, size / t), with t such that they add up to `number`."""
    if size.numel() <= number:
        return torch.ones_like(size)
    largest = size.sort(descending=True).values
    rest = largest.flip(0).cumsum(0).flip(0)  # of each and all that are smaller
    sure = torch.arange(size.numel(), device=size.device)  # that many are taken anyway
    threshold = rest / (number - sure).clamp(min=1)
    first = int(((largest <= threshold) & (sure < number)).long().argmax())
    return (size / threshold[first]).clamp(max=1.0)


def systematic(probability: Tensor, rng: torch.Generator) -> Tensor:
    """Indices, each in with its probability; how many is fixed if the probabilities add up so."""
    order = torch.randperm(probability.numel(), generator=rng, device=rng.device)
    share = (probability[order].double() * FINE).round().long()  # whole, for the same reason
    start = torch.randint(FINE, (1,), generator=rng, device=rng.device)
    upto = (torch.cat([start, start + share.cumsum(0)])) // FINE
    return order[upto[1:] > upto[:-1]]
