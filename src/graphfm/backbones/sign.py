"""SIGN (Rossi et al., 2020): the scalable inception graph network."""

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone, HiddenSettings
from graphfm.data.graph import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.hops import hops
from graphfm.norm import BatchNorm


class HopLayers(nn.Module):
    """Computes [X W_0, AX W_1, ..., A^K X W_K] from rows that hold all hops side by side."""

    def __init__(self, in_width: int, out_width: int, num_hops: int) -> None:
        super().__init__()
        self.in_width = in_width
        self.hops = nn.ModuleList(nn.Linear(in_width, out_width) for _ in range(num_hops + 1))

    def forward(self, x: Tensor) -> Tensor:
        parts = torch.split(x, self.in_width, dim=1)
        return torch.cat([hop(part) for hop, part in zip(self.hops, parts, strict=True)], dim=1)


class SIGN(Backbone):
    """Features of each hop are computed once; training then needs no neighbours.

    ReLU([X W_0, AX W_1, ..., A^K X W_K]) W: the paper's formula, for the powers of one matrix A,
    the symmetrically normalised adjacency without self-loops. `layers` is the number of hops K.
    The whole network is the decoder, so that inference holds hidden rows of one chunk of nodes
    instead of all nodes.
    """

    Settings = HiddenSettings

    def __init__(
        self, in_width: int, out_width: int, settings: HiddenSettings = HiddenSettings()
    ) -> None:
        width = settings.hidden * (settings.layers + 1)
        decode = nn.Sequential(
            nn.Dropout(settings.dropout if settings.dropout_input else 0.0),
            HopLayers(in_width, settings.hidden, settings.layers),
            BatchNorm(width) if settings.batch_norm else nn.Identity(),
            nn.ReLU(),
            nn.Dropout(settings.dropout),
            nn.Linear(width, out_width),
        )
        super().__init__(nn.Identity(), [], decode)
        self.num_hops = settings.layers
        self.hop_width = in_width * (settings.layers + 1)

    def adjacency(self, graph: Graph) -> Adjacency:
        return Adjacency.symmetric_without_loops(graph)

    def features(self, graph: Graph) -> Tensor:
        return torch.cat(hops(self.adjacency(graph), self.num_hops), dim=1)
