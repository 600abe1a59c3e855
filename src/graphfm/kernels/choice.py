"""Which neighbours of a node are picked, in plain PyTorch, from numbers in [0, 1).

One number for each node (`uniform_of`) picks at equal distances from that start. One for each pick
(`uniforms_of`, a row for each) picks independently: every set of neighbours is equally likely.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphfm.batch import offsets

# Two odd 64-bit factors (as signed numbers) of splitmix64, a mixer whose constants are well tested.
GOLDEN, MIX = -7046029254386353131, -4658895280553007687


def numbers_for(ids: Tensor, salt: Tensor, fanout: int, independent: bool) -> Tensor:
    """The numbers that decide what `ids` pick; a single pick is the same in both forms."""
    if independent and fanout > 1:
        return uniforms_of(ids, salt, fanout)
    return uniform_of(ids, salt)


def uniform_of(ids: Tensor, salt: Tensor) -> Tensor:
    """A number in [0, 1) for each id, the same for the same id and salt (in steps of 2^-24)."""
    return (_mixed(ids, salt) >> 40 & 0xFFFFFF).double() / 2**24


def uniforms_of(ids: Tensor, salt: Tensor, fanout: int) -> Tensor:
    """[fanout, num_ids] such numbers in steps of 2^-48, each of them by a salt of its own.

    Of d neighbours each then has its chance up to a relative error of d * 2^-48.
    """
    salts = _mixed(torch.arange(fanout, device=ids.device), salt).unsqueeze(1)
    return (_mixed(ids, salts) >> 16 & 0xFFFFFFFFFFFF).double() / 2**48


def fixed_positions(
    first: Tensor, degree: Tensor, fanout: int, uniform: Tensor
) -> tuple[Tensor, Tensor]:
    """Pick `fanout` edges of each row: their positions, and the factors of their weights."""
    if fanout == 1:  # then the factor is the degree, be it one or none
        return first + (uniform.flatten() * degree).long(), degree.float()
    slot = torch.arange(fanout, device=first.device)
    if uniform.dim() == 1:
        spread = ((uniform.unsqueeze(1) + slot) / fanout * degree.unsqueeze(1)).long()
    else:
        spread = _independent(degree, uniform).T
    first, degree = first.unsqueeze(1), degree.unsqueeze(1)
    few = degree <= fanout
    chosen = torch.where(few, slot % degree.clamp(min=1), spread)
    factor = torch.where(few, (slot < degree).float(), degree / fanout)
    return (first + chosen).flatten(), factor.flatten()


def distinct_positions(
    indptr: Tensor, ids: Tensor, fanout: int, uniform: Tensor | Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Pick at most `fanout` edges of each node, each once: numbers, positions and factors.

    `uniform` holds a number for each node; or it is a function that makes those for independent
    picks ([fanout, num_ids]) of given nodes. It is asked only for nodes that have to choose.
    """
    first = indptr.index_select(0, ids)
    degree = indptr.index_select(0, ids + 1) - first
    count = degree.clamp(max=fanout)
    if fanout == 1:
        assert isinstance(uniform, Tensor)
        real = count.nonzero().squeeze(1)
        position, factor = fixed_positions(first, degree, fanout, uniform)
        return count, position.index_select(0, real), factor.index_select(0, real)
    row = torch.arange(ids.numel(), device=ids.device).repeat_interleave(count)
    slot = torch.arange(row.numel(), device=ids.device) - offsets(count).index_select(0, row)
    each = degree.index_select(0, row)
    few = each <= fanout
    if isinstance(uniform, Tensor):
        spread = ((uniform.index_select(0, row) + slot) / fanout * each).long()
        slot = torch.where(few, slot, spread)
    elif (many := (degree > fanout).nonzero().squeeze(1)).numel():
        numbers = uniform(ids.index_select(0, many))
        slot = slot.masked_scatter_(~few, _independent(degree.index_select(0, many), numbers).T)
    return count, first.index_select(0, row) + slot, torch.where(few, 1.0, each / fanout)


def _independent(degree: Tensor, uniform: Tensor) -> Tensor:
    """[fanout, num_rows] distinct numbers below each degree, every set equally likely (Floyd).

    Pick i takes one of the first d - r + i + 1 numbers, or the last of them if that is taken. Rows
    with a smaller degree than there are picks hold numbers without a meaning.
    """
    fanout = uniform.size(0)
    last = (degree - fanout).clamp(min=0) + torch.arange(
        fanout, device=degree.device
    ).unsqueeze(1)  # fmt: skip
    chosen = (uniform * (last + 1)).long()
    for number in range(1, fanout):
        taken = (chosen[:number] == chosen[number]).any(dim=0)
        chosen[number] = torch.where(taken, last[number], chosen[number])
    return chosen


def _mixed(ids: Tensor, salt: Tensor) -> Tensor:
    """A hash of 64 bits, of which the upper ones are the better ones."""
    # Without the second round the numbers of two ids would differ by one of a few constants.
    mixed = (ids ^ salt) * GOLDEN
    return (mixed ^ (mixed >> 32 & 0xFFFFFFFF)) * MIX
