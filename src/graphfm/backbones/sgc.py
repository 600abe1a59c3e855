"""The simple graph convolution (Wu et al., 2019)."""

from torch import Tensor, nn

from graphfm.backbones.base import Backbone, DepthSettings
from graphfm.data.graph import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.hops import hops


class SGC(Backbone):
    """A GCN without activations: features are carried over all hops once, then multiplied once.

    A^K X W + b, where A is the symmetrically normalised adjacency with self-loops. `layers` is the
    number of hops K.
    """

    Settings = DepthSettings

    def __init__(
        self, in_width: int, out_width: int, settings: DepthSettings = DepthSettings()
    ) -> None:
        super().__init__(nn.Identity(), [], nn.Linear(in_width, out_width))
        self.num_hops, self.hop_width = settings.layers, in_width

    def adjacency(self, graph: Graph) -> Adjacency:
        return Adjacency.symmetric(graph)

    def features(self, graph: Graph) -> Tensor:
        return hops(self.adjacency(graph), self.num_hops)[-1]
