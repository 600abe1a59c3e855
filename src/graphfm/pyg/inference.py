"""Exact inference with any network of PyG: its own forward, messages in chunks of targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from graphfm.backbones.base import Tell, tell_nobody
from graphfm.pyg.watching import convolutions

NUMBERS = 1 << 25  # of messages at once: 128 MiB
Sorted = tuple[Tensor | None, Tensor, Tensor]  # order of the edges, their ends per row, the edges


@contextmanager
def in_chunks(net: nn.Module, chunk_edges: int, tell: Tell = tell_nobody) -> Iterator[None]:
    """Inside the block, no convolution holds messages of more edges than that at once.

    (Of a target with more edges all are held.) The rows of all nodes are in memory, as in the
    network's own forward, and so are the edges.
    """
    sorts = dict[tuple[int, int, int], Sorted]()
    with ExitStack() as stack:
        for conv in convolutions(net).values():
            for name in ("propagate", "edge_updater"):
                whole = getattr(conv, name, None)
                if whole is not None:
                    stack.callback(vars(conv).pop, name, None)
                    vars(conv)[name] = _Chunks(conv, name, whole, chunk_edges, sorts, tell)
        yield


class _Chunks:
    """A propagation, or an update of edges, by chunks of targets."""

    def __init__(
        self,
        conv: MessagePassing,
        name: str,
        whole: Callable[..., Tensor],
        chunk_edges: int,
        sorts: dict[tuple[int, int, int], Sorted],
        tell: Tell,
    ) -> None:
        self.conv, self.name, self.whole, self.tell = conv, name, whole, tell
        self.chunk_edges, self.sorts = chunk_edges, sorts
        functions = ("message", "aggregate", "update") if name == "propagate" else ("edge_update",)
        names = {n for f in functions for n in conv.inspector.get_param_names(f)}
        self.lifted = {n[:-2] for n in names if n.endswith(("_i", "_j"))}
        self.end = 1 if conv.flow == "source_to_target" else 0  # the end at which messages meet

    def __call__(self, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
        if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
            return self.whole(edge_index, size=size, **kwargs)
        num_edges, at_once = edge_index.size(1), self._edges_at_once(kwargs)
        if num_edges <= at_once:
            return self.whole(edge_index, size=size, **kwargs)
        sizes = self._sizes(size, kwargs)
        order, last, _ = self._sorted(edge_index, sizes[self.end])
        order = torch.arange(num_edges, device=last.device) if order is None else order
        pieces, start, done = list[Tensor](), 0, 0
        while start < sizes[self.end]:
            limit = torch.searchsorted(last, done + at_once, right=True)
            end = min(max(int(limit), start + 1), sizes[self.end])
            stop = int(last[end - 1])
            some = order[done:stop]
            pieces.append(self._piece(edge_index, sizes, kwargs, (start, end), some))
            start, done = end, stop
            self.tell(f"messages of {type(self.conv).__name__}", done, num_edges)
        if self.name == "propagate":
            return torch.cat(pieces, self.conv.node_dim)
        rows = torch.cat(pieces)
        return torch.empty_like(rows).index_copy_(0, order, rows)

    def _edges_at_once(self, kwargs: dict[str, Any]) -> int:
        """Edges whose messages may be in memory together: fewer where rows are wide."""
        rows = [p for n, v in kwargs.items() if n in self.lifted for p in _pair(v) if p is not None]
        widths = [row.numel() // max(row.size(self.conv.node_dim), 1) for row in rows]
        return int(max(1, min(self.chunk_edges, NUMBERS // max([1, *widths]))))

    def _sizes(self, size: Any, kwargs: dict[str, Any]) -> list[Any]:
        """Numbers of rows at both ends of the edges."""
        pairs = [_pair(value) for name, value in kwargs.items() if name in self.lifted]
        dim = self.conv.node_dim
        found = [next((p[e].size(dim) for p in pairs if p[e] is not None), None) for e in (0, 1)]
        given = list(size) if size is not None else [None, None]
        known = [a if a is not None else b for a, b in zip(given, found, strict=True)]
        return [k if k is not None else known[1 - e] for e, k in enumerate(known)]

    def _sorted(self, edge_index: Tensor, num_rows: int) -> Sorted:
        """The order of the edges by target (None: they are in order), and where each row ends."""
        key = (edge_index.data_ptr(), edge_index.size(1), self.end)
        if key not in self.sorts:  # the edges are kept: another tensor may get their address
            targets = edge_index[self.end]
            in_order = bool((targets[1:] >= targets[:-1]).all())
            order = None if in_order else torch.argsort(targets, stable=True)
            last = torch.bincount(targets, minlength=num_rows).cumsum(0)
            self.sorts[key] = order, last, edge_index
        return self.sorts[key]

    def _piece(
        self,
        edge_index: Tensor,
        sizes: list[int],
        kwargs: dict[str, Any],
        rows: tuple[int, int],
        some: Tensor,
    ) -> Tensor:
        start, end = rows
        part, small = edge_index[:, some], list(sizes)
        part[self.end] -= start
        small[self.end] = end - start
        counts = edge_index.size(1), sizes[self.end]

        def cut(name: str, value: Any) -> Any:
            if name in self.lifted and value is not None:
                pair = _pair(value)
                own = pair[self.end]
                pair[self.end] = (
                    None if own is None else own.narrow(self.conv.node_dim, start, end - start)
                )
                return tuple(pair)
            if isinstance(value, Tensor) and value.dim() and value.size(0) in counts:
                return value[some] if value.size(0) == counts[0] else value[start:end]
            return value

        changed = {name: cut(name, value) for name, value in kwargs.items()}
        return self.whole(part, size=tuple(small), **changed)


def _pair(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value, value]
