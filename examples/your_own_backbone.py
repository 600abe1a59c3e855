"""A network of your own: GIN (Xu et al., 2019) with means, trained by any method.

A backbone is encode -> graph layers -> decode. A layer has two halves: `aggregate` combines rows
along the edges, `update` turns each node's aggregate into its output. Run it, or name it:

    python examples/your_own_backbone.py
    cd examples && graphfm train --backbone your_own_backbone:GIN --method gas --batch-norm
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import nn

import graphfm
from graphfm.backbones.base import Backbone, Settings, stack
from graphfm.kernels import weighted_sum
from graphfm.layer import GraphLayer
from graphfm.options import Setting


@dataclass(frozen=True, kw_only=True)
class GINSettings(Settings):
    """Those of every network of equal layers, and one more."""

    start_eps: Annotated[float, Setting("Weight of a node's own row, beyond 1.")] = 0.0


class GINLayer(GraphLayer):
    """MLP((1 + eps) h_v + mean of h_u over the neighbours u of v)."""

    sums = True  # `aggregate` is `weighted_sum` and nothing else, so kernels may fuse it

    def __init__(self, in_width, out_width, *, start_eps=0.0, **options):
        super().__init__(in_width, in_width, out_width, **options)
        self.eps = nn.Parameter(torch.tensor(start_eps))
        self.mlp = nn.Sequential(
            nn.Linear(in_width, out_width), nn.ReLU(), nn.Linear(out_width, out_width)
        )

    def aggregate(self, h, block):
        return weighted_sum(h, block)

    def update(self, agg, targets):
        return self.finish(self.mlp((1 + self.eps) * targets.h + agg), targets)


class GIN(Backbone):
    """The graph isomorphism network, with the mean of neighbours.

    The mean is the default; on nodes with thousands of neighbours it trains better than the sum of
    the paper. For the sum, define `adjacency(self, graph)` and return `Adjacency.sum(graph)`.
    """

    Settings = GINSettings

    def __init__(self, in_width, out_width, settings=GINSettings()):
        def make_layer(*widths, **options):
            return GINLayer(*widths, start_eps=settings.start_eps, **options)

        layers = stack(make_layer, in_width, out_width, settings)
        super().__init__(nn.Identity(), layers, nn.Identity())


def main() -> None:
    graph = graphfm.synthetic(scale=0.1)
    for method in ("full", "graphsage", "graphfm-ib", "gas"):
        result = graphfm.train(
            graph, backbone=GIN, method=method, hidden=32, epochs=10, batch_norm=True
        )
        print(f"{method:<11} test {result.score.test:.4f}")


if __name__ == "__main__":
    main()
