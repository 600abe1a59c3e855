"""A small problem that has the form that the proof of Theorem 1 assumes; ReLU is not smooth.

The trained weights are those of the encoder, so that all layers' aggregates depend on them: F(w) =
f_{K+1}(f_K(... f_1(w))), as in the paper's appendix. The layers are the paper's own example,
tanh(W mean(h_u : u in N_v and v)), with fixed W. Labels are drawn from the network with other
encoder weights, so the minimum is finite, and gradient descent reaches it in some tens of steps.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone
from graphfm.batch import Block, Targets
from graphfm.data.graph import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.diagnostics.convergence import Coupling
from graphfm.estimators.aggregate_momentum import AggregateMomentum
from graphfm.kernels import weighted_sum
from graphfm.layer import GraphLayer
from graphfm.methods import Method
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.training.inference import LayerwiseInference
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

PLAIN: dict[str, Any] = {"dropout": 0.0, "batch_norm": False, "residual": False}
WIDTH = 3  # of features, hidden rows and classes
BETA_2, EPSILON_0 = 0.1, 1.0  # of Adam; as large as this, 1 / (sqrt(v) + e0) is from 0.3 to 1


class SmoothLayer(GraphLayer):
    """tanh(W aggregate + b); the last layer of a network leaves out tanh."""

    sums = True

    def __init__(self, in_width: int, out_width: int, *, activation: bool = True) -> None:
        super().__init__(in_width, in_width, out_width, activation=activation, **PLAIN)
        self.linear = nn.Linear(in_width, out_width)

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        return weighted_sum(h, block)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        out: Tensor = self.linear(agg)
        return out.tanh() if self.activation else out


class SmoothNetwork(Backbone):
    """A trained linear encoder, and smooth layers of fixed weights over means of neighbours."""

    def __init__(self, layers: int) -> None:
        stack = [
            SmoothLayer(WIDTH, WIDTH, activation=depth < layers - 1) for depth in range(layers)
        ]
        for layer in stack:
            nn.init.orthogonal_(layer.linear.weight, 2.0)
            nn.init.zeros_(layer.linear.bias)
            layer.requires_grad_(False)
        super().__init__(nn.Linear(WIDTH, WIDTH, bias=False), stack, nn.Identity())

    def adjacency(self, graph: Graph) -> Adjacency:
        """The mean of a node's neighbours and itself."""
        share = 1 / (graph.degree.float() + 1)
        return Adjacency(graph, row_scale=share, self_weight=share)


@dataclass(frozen=True)
class SmoothProblem:
    """A graph with labels, and a network at the weights where training starts."""

    graph: Graph
    network: SmoothNetwork

    @classmethod
    def make(
        cls, layers: int, *, num_nodes: int = 101, degree: int = 8, seed: int = 0
    ) -> SmoothProblem:
        """Draw a problem; nodes with similar features are likelier to be neighbours.

        The last node is for validation, without which a trainer does not start; all others train.
        """
        rng = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            network = SmoothNetwork(layers)
            weight = network.encode.weight
            assert isinstance(weight, Tensor)
            nn.init.orthogonal_(weight)
        x = 1.5 * torch.randn(num_nodes, WIDTH, generator=rng)
        far = torch.cdist(x, x) + 4 * torch.rand(num_nodes, num_nodes, generator=rng)
        source = far.fill_diagonal_(torch.inf).argsort(dim=1)[:, :degree].flatten()
        edges = torch.stack([source, torch.arange(num_nodes).repeat_interleave(degree)])
        last = torch.arange(num_nodes) == num_nodes - 1
        unknown = torch.zeros(num_nodes, dtype=torch.long)
        graph = Graph.from_edges(
            edges, x, unknown, train_mask=~last, val_mask=last, num_classes=WIDTH
        )
        chances = LayerwiseInference(network.adjacency(graph))(network).softmax(dim=1)
        y = torch.multinomial(chances, 1, generator=rng).squeeze(1)
        with torch.no_grad():
            weight.copy_(0.3 * torch.randn(WIDTH, WIDTH, generator=rng))
        return cls(replace(graph, y=y), network)

    def trainer(
        self, coupling: Coupling, seed: int, *, batch_size: int = 100, whole_gradient: bool = True
    ) -> Trainer:
        """GraphFM-IB with one neighbour per layer, histories from zero, and the theorem's Adam.

        torch's Adam counts its factors from the other side (0.9 is the paper's 0.1), and divides by
        1 - (1 - beta_1)^t, which the paper's does not.
        """
        estimator = AggregateMomentum(
            beta=coupling.beta, start="zero", whole_gradient=whole_gradient, exact_first_hop=False
        )
        sampler = NeighborSampler(fanout=(1,), batch_size=batch_size)
        settings = Training(lr=coupling.lr, seed=seed)
        method = Method(sampler, estimator)
        trainer = Trainer(self.graph, copy.deepcopy(self.network), method, settings)
        for group in trainer.optimizer.param_groups:
            group.update(betas=(1 - coupling.beta_1, 1 - BETA_2), eps=EPSILON_0)
        return trainer
