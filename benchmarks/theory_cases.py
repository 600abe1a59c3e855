"""The experiments of docs/theory.md: `theory.py` draws them, and `tests/theory` tests them."""

import copy
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from graphfm import Graph
from graphfm.backbones.base import Backbone
from graphfm.backbones.gcn import GCNLayer
from graphfm.diagnostics.convergence import Coupling, GradientTrace, trace_gradient
from graphfm.diagnostics.halo_terms import HaloTerms, Terms
from graphfm.diagnostics.smooth_problem import WIDTH, SmoothProblem
from graphfm.diagnostics.tracking import LayerTracking
from graphfm.estimators.halo_history import HaloHistory
from graphfm.methods import Method
from graphfm.samplers.cluster import ClusterSampler
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

Couple = Callable[..., Coupling]


# ---- Theorem 1


def traces(
    layers: int, couple: Couple, ratios: Sequence[float], seeds: int, *, steps: int = 20
) -> list[list[GradientTrace]]:
    """By seed and ratio: GraphFM-IB on the smooth problem with so many times `steps` steps."""
    problem = SmoothProblem.make(layers)
    couplings = [couple(layers, ratio, lr=0.3, steps=steps) for ratio in ratios]
    return [
        [trace_gradient(problem.trainer(c, seed), c.steps, points=40) for c in couplings]
        for seed in range(seeds)
    ]


def without_momentum(layers: int, ratio: float, *, lr: float, steps: int) -> Coupling:
    """Plain neighbour sampling (beta 1) with the repaired coupling's eta, beta_1 and T."""
    e = ratio ** (-1 / (layers + 3))
    count = round(steps * ratio)
    return Coupling(beta=(1.0,), lr=lr * e ** (layers + 1), beta_1=e**2, steps=count)


def floor(layers: int, beta: float, *, steps: int, seed: int, lr: float = 0.05) -> float:
    """||mean exact gradient|| where training with a constant beta comes to rest."""
    coupling = Coupling(beta=(beta,), lr=lr, beta_1=0.2, steps=steps)
    trainer = SmoothProblem.make(layers).trainer(coupling, seed)
    return trace_gradient(trainer, steps, points=100).rest ** 0.5


# ---- the tracking lemma


def tracked(
    beta: float, *, batch: int = 15, fanout: int = 1, copies: int = 60, seed: int = 0
) -> LayerTracking:
    """Three layers on 31 nodes; a fan-out above 6 reads all neighbours, without noise."""
    problem = SmoothProblem.make(3, num_nodes=31, degree=6)
    return LayerTracking(
        problem.graph, copy.deepcopy(problem.network), beta=(beta,), batch=batch, fanout=fanout,
        copies=copies, seed=seed,
    )  # fmt: skip


def at_rest(
    tracking: LayerTracking, beta: float, move: Callable[[], None] = lambda: None
) -> Tensor:
    """[layers, copies] mean of Y_k over time, once the start is forgotten."""
    found, settle = [], round(30 / beta)
    for step in range(2 * settle):
        move()
        tracking.step()
        if step >= settle and step % 4 == 0:
            found.append(tracking.errors())
    return torch.stack(found).mean(dim=0)


def drift(tracking: LayerTracking, eta: float) -> Callable[[], None]:
    """A function that moves the encoder's weights by eta in a fixed direction of norm 1."""
    weight = tracking.network.encode.weight

    @torch.no_grad()
    def move() -> None:
        weight.add_(direction(), alpha=eta)

    return move


def direction() -> Tensor:
    """Where `drift` moves the weights."""
    drawn = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(0))
    return drawn / drawn.norm()


# ---- Proposition 2


def two_layers(seed: int) -> Backbone:
    """Two layers, each ReLU(W mean(h_u : u in N_v) + b); `Backbone` aggregates by the mean."""
    torch.manual_seed(seed)
    plain = {"dropout": 0.0, "batch_norm": False, "residual": False, "activation": True}
    return Backbone(
        nn.Identity(), [GCNLayer(5, 6, **plain), GCNLayer(6, 3, **plain)], nn.Identity()
    )


def halo_terms(
    seed: int, *, beta: float = 0.3, threshold: int = 0, parts: int = 6, num_nodes: int = 60,
    num_edges: int = 240, lr: float = 0.05,
) -> HaloTerms:  # fmt: skip
    """GraphFM-OB on a random undirected graph, watched."""
    rng = torch.Generator().manual_seed(seed)
    even = torch.arange(num_nodes) % 2 == 0
    graph = Graph.from_edges(
        torch.randint(num_nodes, (2, num_edges), generator=rng),
        torch.randn(num_nodes, 5, generator=rng),
        torch.randint(3, (num_nodes,), generator=rng),
        train_mask=even, val_mask=~even, num_classes=3, undirected=True,
    )  # fmt: skip
    estimator = HaloHistory(beta=(beta,), threshold=threshold, exact_first_hop=False)
    method = Method(ClusterSampler(parts=parts, how="random", seed=seed), estimator)
    return HaloTerms(Trainer(graph, two_layers(seed), method, Training(lr=lr, seed=seed)))


def epochs_of(watched: HaloTerms, epochs: int) -> Iterator[Tensor]:
    for _ in range(epochs):
        yield from watched.trainer.method.sampler.epoch(watched.trainer.rng)


def with_threshold(threshold: int, seeds: int, *, epochs: int = 8) -> list[Terms]:
    """Rows of the halo while the first layer's weights take a random walk, the same for all c."""
    found = []
    for seed in range(seeds):
        watched = halo_terms(seed, threshold=threshold, num_nodes=90, num_edges=800, lr=1e-12)
        walk = torch.Generator().manual_seed(seed)
        weight = watched.trainer.backbone.layers[0].linear.weight
        for step, seeds_of_step in enumerate(epochs_of(watched, epochs)):
            terms = watched.step(seeds_of_step)
            found += terms if step >= 12 else []  # after two epochs every node was in a batch
            with torch.no_grad():
                weight.add_(0.02 * torch.randn(weight.shape, generator=walk))
    return found
