"""GCNII (Chen et al., 2020): deep GCNs with initial residuals and identity mappings."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Init, Layers, Settings, initialize
from graphfm.batch import Block, Targets
from graphfm.data.graph import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.kernels import weighted_sum
from graphfm.layer import GraphLayer
from graphfm.options import Setting


@dataclass(frozen=True, kw_only=True)
class GCNIISettings(Settings):
    """The settings of `GCNII`."""

    layers: Layers = 4
    alpha: Annotated[float, Setting("Weight of the encoder's output in every layer.")] = 0.1
    theta: Annotated[
        float, Setting("Strength of the weights: layer k mixes them in by log(theta / k + 1).")
    ] = 0.5
    shared_weights: Annotated[
        bool, Setting("Use one matrix for both terms of a layer, not one each.")
    ] = True
    init: Init = "torch"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha <= 1:
            raise InputError(f"alpha is {self.alpha}; expected 0 to 1")
        if not 0 < self.theta < math.inf:
            raise InputError(f"theta is {self.theta}; expected a number above 0")


class GCNIILayer(GraphLayer):
    """((1 - a) A h + a h_0) ((1 - b) I + b W), with a matrix of its own for h_0 if not shared."""

    sums = True

    def __init__(
        self,
        width: int,
        *,
        alpha: float,
        mapping: float,
        shared_weights: bool,
        init: str = "torch",
        **options: Any,
    ) -> None:
        super().__init__(width, width, width, **options)
        self.alpha, self.mapping = alpha, mapping
        self.linear = initialize(nn.Linear(width, width, bias=False), init)
        self.initial = None
        if not shared_weights:
            self.initial = initialize(nn.Linear(width, width, bias=False), init)

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        return weighted_sum(h, block)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        if self.initial is None:
            mixed = torch.lerp(agg.float(), targets.h0.float(), self.alpha)
            out = torch.lerp(mixed, self.linear(mixed).float(), self.mapping)
        else:
            agg, h0 = (1 - self.alpha) * agg.float(), self.alpha * targets.h0.float()
            weighted = (self.linear(agg) + self.initial(h0)).float()
            out = torch.lerp(agg + h0, weighted, self.mapping)
        return self.finish(out, targets)


class GCNII(Backbone):
    """A GCN that can be many layers deep: every layer reads the encoded features again."""

    Settings = GCNIISettings
    reads_h0 = True

    def __init__(
        self, in_width: int, out_width: int, settings: GCNIISettings = GCNIISettings()
    ) -> None:
        dropout_input = settings.dropout if settings.dropout_input else 0.0
        layers = [
            GCNIILayer(
                settings.hidden,
                alpha=settings.alpha,
                mapping=math.log(settings.theta / (depth + 1) + 1),
                shared_weights=settings.shared_weights,
                init=settings.init,
                dropout=settings.dropout,
                batch_norm=settings.batch_norm,
                residual=settings.residual,
                activation=True,
            )
            for depth in range(settings.layers)
        ]
        super().__init__(
            nn.Sequential(
                nn.Dropout(dropout_input), nn.Linear(in_width, settings.hidden), nn.ReLU()
            ),
            layers,
            nn.Sequential(nn.Dropout(settings.dropout), nn.Linear(settings.hidden, out_width)),
        )

    def adjacency(self, graph: Graph) -> Adjacency:
        return Adjacency.symmetric(graph)
