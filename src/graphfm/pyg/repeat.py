"""The aggregate of a propagation for other rows and other edges: one convolution, run alone."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from graphfm.batch import Block
from graphfm.pyg.calls import joined, parts_of, split_up, with_parts
from graphfm.pyg.cut import Cut
from graphfm.pyg.factors import EdgePart, edge_part, factors_for, scaled
from graphfm.pyg.guards import uncached
from graphfm.pyg.watching import Place, Watcher, watching
from graphfm.pyg.whole_graph import WholeGraph


class Found(Exception):  # noqa: N818
    """The rows that were looked for are known, and the rest of the pass is not needed."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.rows = rows


class UpTo(Watcher):
    """Stops a pass at the rows that a propagation reads."""

    def __init__(self, cut: Cut) -> None:
        self.cut = cut

    def enter(self, place: Place, arguments: dict[str, Any]) -> None:
        if place == self.cut.call.place and not self.cut.inner:
            raise Found(joined(arguments, self.cut.rows))

    def propagate(self, place: Place, arguments: dict[str, Any]) -> None:
        if place == self.cut.place and self.cut.inner:
            raise Found(joined(arguments, self.cut.rows))


class Repeat(Watcher):
    """Runs a convolution up to the aggregate of one of its propagations."""

    def __init__(self, net: nn.Module, whole: WholeGraph, *, averages: bool, weighs: bool) -> None:
        self.net, self.whole, self.averages, self.weighs = net, whole, averages, weighs

    def __call__(self, cut: Cut, rows: Tensor, block: Block) -> Tensor:
        """[num_dst, agg_width] the aggregate of the rows of a block's sources."""
        self.cut, self.rows = cut, rows
        self.num_rows = block.num_src
        weighs = self.weighs or block.share is not None  # a halo sees part of its neighbours
        self.part: EdgePart = edge_part(block, averages=self.averages, weighs=weighs)
        conv, arguments = self._call(block)
        try:
            with (
                uncached(conv), self.whole.degrees(), self.whole.degrees.of(block.src_ids),
                watching(conv, self),
            ):  # fmt: skip
                conv(**arguments)
        except Found as found:
            return found.rows[: block.num_dst].flatten(1)
        raise AssertionError(f"{cut.place} does not propagate")

    def _call(self, block: Block) -> tuple[nn.Module, dict[str, Any]]:
        """The convolution, and the arguments of its call with other rows and edges."""
        cut, call = self.cut, self.cut.call
        assert call.edges is not None
        conv = self.net.get_submodule(call.place.module)
        arguments = dict(cut.template)
        data = self.whole.data_of(block.edges, block.src_ids, block.dst_ids)
        arguments[call.edges] = self.part.edge_index
        arguments |= {name: data[known] for name, known in call.per_edge.items() if known}
        if cut.inner:  # any rows will do: the propagation gets its own
            for name in call.rows:
                zeros = [
                    p.new_zeros(self.num_rows, *p.shape[1:]) for p in parts_of(arguments[name])
                ]
                arguments[name] = with_parts(arguments[name], zeros)
        else:
            split_up(arguments, call.rows, self.rows)
        return conv, arguments

    def enter(self, place: Place, arguments: dict[str, Any]) -> None:
        if not place.module:
            call = self.cut.call
            names = [name for name, known in call.per_edge.items() if known == "edge_weight"]
            weight = arguments[names[0]] if names else None
            self.whole.degrees.expect(self.part.edge_index, weight)

    def propagate(self, place: Place, arguments: dict[str, Any]) -> None:
        if self.cut.inner and place == Place("", 1, self.cut.place.hop):
            split_up(arguments, self.cut.rows, self.rows)

    def message(self, place: Place, edge_index: Tensor, out: Tensor) -> Tensor | None:
        factor = factors_for(self.cut, [self.part], None)
        if factor is None:
            return None
        return scaled(self.cut, out, self.part.edge_index, edge_index, factor, self.num_rows)

    def aggregate(self, place: Place, out: Tensor) -> None:
        if place == Place("", 1, self.cut.place.hop):
            raise Found(out)
