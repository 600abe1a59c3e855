"""How much a sampled edge counts: factors of messages, so that sums and means stay unbiased."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Block
from graphfm.errors import InputError
from graphfm.pyg.cut import MEAN, SUM, Cut


@dataclass(frozen=True)
class EdgePart:
    """Edges of one block in the numbering of the batch, and for how many edges each stands."""

    edge_index: Tensor  # [2, num_edges]
    counts: Tensor  # [num_edges] of a sum: degree by picks, where neighbours are sampled evenly
    shares: Tensor | None  # [num_edges] of a mean; None: all ones

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)


def edge_part(
    block: Block, *, averages: bool, weighs: bool, factor: Tensor | None = None
) -> EdgePart:
    """The edges of a block. Its weights are those of a mean (`averages`) or of a sum.

    `weighs` says that an edge's weight depends on more than its target's degree and picks.
    """
    edges, row = block.edges, block.edges.row.long()
    weight = edges.weight if factor is None else edges.weight * factor[row]
    degree = block.degree.clamp(min=1)[row]
    counts = weight * degree if averages else weight
    shares = counts * edges.indptr.diff().float()[row] / degree if weighs else None
    return EdgePart(torch.stack([edges.col.long(), row]), counts, shares)


def factors_for(cut: Cut, parts: list[EdgePart], active: int | None) -> Tensor | None:
    """The factor of each given edge in a propagation; None: all ones.

    `active` is the only part whose edges count in this hop; None: all do.
    """
    found = [
        part.counts if cut.kind == SUM else part.shares if cut.kind == MEAN else None
        for part in parts
    ]
    if active is None and all(one is None for one in found):
        return None
    ones = [
        torch.ones_like(part.counts) if one is None else one
        for part, one in zip(parts, found, strict=True)
    ]
    if active is not None:
        ones = [one if n == active else torch.zeros_like(one) for n, one in enumerate(ones)]
    return torch.cat(ones)


def scaled(
    cut: Cut, out: Tensor, given: Tensor, used: Tensor, factor: Tensor, num_rows: int
) -> Tensor:
    """Multiply messages along the `used` edges by the factors of the `given` ones.

    A convolution may leave out self-loops that it was given, and add one for each row at the end:
    these are never sampled, and count once.
    """
    if out.size(0) != given.size(1) or cut.adds_loops:
        factor = _moved(cut, given, factor, num_rows, out.size(0), used)
    shape = (-1, *[1] * (out.dim() - 1))
    return out * factor.to(out.dtype).view(shape)


def _moved(
    cut: Cut, given: Tensor, factor: Tensor, num_rows: int, num_messages: int, used: Tensor
) -> Tensor:
    loops = factor.new_ones(num_rows)
    if num_messages == factor.numel() + num_rows:
        return torch.cat([factor, loops])
    proper = given[0] != given[1]
    kept = torch.cat([factor[proper], loops])
    if kept.numel() == num_messages:
        return kept
    found = _of_same_edges(given, factor, used, num_rows)
    if found is None:
        raise InputError(
            f"{cut.place.module} passes messages along other edges than it is given, and this "
            "method weighs each edge apart; use gas, cluster-gcn or full"
        )
    return found


def _of_same_edges(given: Tensor, factor: Tensor, used: Tensor, num_rows: int) -> Tensor | None:
    """The factors of some of the given edges, found by their ends; None if that is ambiguous."""
    keys, order = torch.sort(given[0] * num_rows + given[1], stable=True)
    factor, wanted = factor[order], used[0] * num_rows + used[1]
    alike = (keys[1:] != keys[:-1]) | (factor[1:] == factor[:-1])
    place = torch.searchsorted(keys, wanted).clamp(max=max(keys.numel() - 1, 0))
    if not bool(alike.all()) or not torch.equal(keys[place], wanted):
        return None
    return factor[place]
