"""Calls of convolutions: which arguments are rows of nodes, edges, or data of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphfm.pyg.watching import Place


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a convolution, as a probe saw it. Arguments are named."""

    place: Place
    depth: int  # hops that its input depends on: the number of the block whose edges it reads
    last_depth: int  # of its last propagation; larger than `depth` if it has several hops
    edges: str | None  # the argument that is the given `edge_index`; None: there is none
    per_edge: Mapping[str, str | None]  # arguments with a value for each edge: the graph's, or None
    rows: tuple[str, ...]  # arguments with a row for each node
    deep: tuple[str, ...]  # those of them that depend on other nodes
    raw: bool  # its only rows are the features themselves, also in training
    repeatable: bool  # it can be called alone, on other rows: all else is known


def parts_of(value: Any) -> list[Tensor]:
    """The different tensors in an argument, which may be a pair of rows."""
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, tuple | list):
        return []
    return list({id(part): part for part in value if isinstance(part, Tensor)}.values())


def with_parts(value: Any, parts: Sequence[Tensor]) -> Any:
    """The argument with other tensors in the places of its own."""
    if isinstance(value, Tensor):
        return parts[0]
    new = {id(old): part for old, part in zip(parts_of(value), parts, strict=True)}
    return tuple(new.get(id(part), part) for part in value)


def shape_only(value: Any) -> Any:
    """An argument of a call, with rows that hold nothing but their shape."""
    parts = parts_of(value)
    return with_parts(value, [part[:0].clone() for part in parts]) if parts else value


def joined(arguments: Mapping[str, Any], names: Sequence[str]) -> Tensor:
    """The rows of several arguments side by side, [num_rows, width]."""
    rows = [part.flatten(1) for name in names for part in parts_of(arguments[name])]
    return rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)


def split_up(arguments: dict[str, Any], names: Sequence[str], rows: Tensor) -> None:
    """Put rows that `joined` has made, or others of their shape, back into the arguments."""
    start = 0
    for name in names:
        parts = []
        for part in parts_of(arguments[name]):
            width = part.flatten(1).size(1)
            own = rows[:, start : start + width]
            parts.append(own.reshape(rows.size(0), *part.shape[1:]))
            start += width
        arguments[name] = with_parts(arguments[name], parts)
