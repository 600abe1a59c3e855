"""GraphSAGE (Hamilton et al., 2017) with the mean aggregator."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from graphfm.backbones.base import Backbone, Settings, stack
from graphfm.batch import Block, Targets
from graphfm.data.graph import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum
from graphfm.layer import GraphLayer
from graphfm.options import Setting, check_choices


@dataclass(frozen=True, kw_only=True)
class SAGESettings(Settings):
    """The settings of `SAGE`."""

    average_self: Annotated[
        bool,
        Setting(
            "Average a node's own row with its neighbours', with one matrix for all.", rare=True
        ),
    ] = False
    unit_rows: Annotated[
        Literal["none", "outputs", "aggregates"],
        Setting(
            "Scale rows to length 1: the outputs of hidden layers, or the aggregates.", rare=True
        ),
    ] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices(self)


class SAGELayer(GraphLayer):
    """W_1 mean(h_u : u in N_v) + W_2 h_v, with W_1 and W_2 side by side in one matrix."""

    sums = joins = True

    def __init__(
        self, in_width: int, out_width: int, *, unit_rows: str = "none", **options: Any
    ) -> None:
        super().__init__(in_width, in_width, out_width, **options)
        self.unit_rows = unit_rows
        neighbors = nn.Linear(in_width, out_width)
        root = nn.Linear(in_width, out_width, bias=False)
        self.weight = nn.Parameter(torch.empty(out_width, 2 * in_width))
        with torch.no_grad():  # not by torch.cat: for a plan's weights it loads torch's compiler
            self.weight[:, :in_width] = neighbors.weight
            self.weight[:, in_width:] = root.weight
        self.bias = neighbors.bias

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        return weighted_sum(h, block)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        if self.unit_rows == "aggregates":
            return self.combined(normalize(agg), targets)
        if targets.joined is not None:
            out = self.product(targets.joined, self.weight, self.bias, targets)
        else:
            out = self.combined(agg, targets)
        return normalize(out) if self.unit_rows == "outputs" and self.activation else out

    def combined(self, agg: Tensor, targets: Targets) -> Tensor:
        """The output from aggregate and own row, before any scaling to length 1."""
        # Two products are cheaper than a copy that joins both rows.
        of_neighbors, of_self = self.weight.chunk(2, dim=1)
        out = torch.addmm(linear(agg, of_neighbors, self.bias), targets.h, of_self.t())
        return self.finish(out, targets)


class AveragingLayer(SAGELayer):
    """W mean(h_u : u in N_v or u = v): the network of the paper's equation 4."""

    joins: ClassVar[bool] = False

    def __init__(self, in_width: int, out_width: int, **options: Any) -> None:
        super().__init__(in_width, out_width, **options)
        self.weight = nn.Parameter(self.weight[:, :in_width].detach().clone())

    def combined(self, agg: Tensor, targets: Targets) -> Tensor:
        return self.product(agg, self.weight, self.bias, targets)


class SAGE(Backbone):
    """Combines each node's row with the mean of its neighbours'. A good first choice."""

    Settings = SAGESettings

    def __init__(
        self, in_width: int, out_width: int, settings: SAGESettings = SAGESettings()
    ) -> None:
        self.average_self = settings.average_self
        kind = AveragingLayer if settings.average_self else SAGELayer
        layers = stack(partial(kind, unit_rows=settings.unit_rows), in_width, out_width, settings)
        super().__init__(nn.Identity(), layers, nn.Identity())

    def adjacency(self, graph: Graph) -> Adjacency:
        kind = Adjacency.mean_with_self if self.average_self else Adjacency.mean
        return kind(graph)
