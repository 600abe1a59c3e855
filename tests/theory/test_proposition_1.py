"""Proposition 1: what GNNAutoScale gets wrong is bounded by how stale its histories are.

||h_v - h_full_v|| <= C_sigma C_k C_A sum over out-of-batch neighbours u of ||h~_u - h_u||, where
the activation is C_sigma-Lipschitz (ReLU: 1), C_k bounds the norm of the layer's weight, and the
aggregator is C_A-Lipschitz (the mean over the neighbours of v: 1 / |N_v|).
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from graphfm import Graph
from graphfm.backbones.base import Backbone
from graphfm.backbones.gcn import GCNLayer
from graphfm.estimators.exact import Exact
from graphfm.estimators.halo_history import HaloHistory
from graphfm.methods import Method
from graphfm.samplers.cluster import ClusterSampler
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def random_graph(num_nodes: int, num_edges: int, seed: int) -> Graph:
    rng = torch.Generator().manual_seed(seed)
    even = torch.arange(num_nodes) % 2 == 0
    return Graph.from_edges(
        torch.randint(num_nodes, (2, num_edges), generator=rng),
        torch.randn(num_nodes, 5, generator=rng),
        torch.randint(3, (num_nodes,), generator=rng),
        train_mask=even,
        val_mask=~even,
        num_classes=3,
    )


def network(seed: int) -> Backbone:
    """Two layers, each ReLU(W mean(h_u : u in N_v) + b); `Backbone` aggregates by the mean."""
    torch.manual_seed(seed)
    plain = {"dropout": 0.0, "batch_norm": False, "residual": False, "activation": True}
    layers = [GCNLayer(5, 6, **plain), GCNLayer(6, 3, **plain)]
    return Backbone(nn.Identity(), layers, nn.Identity())


def trainer_of(graph: Graph, seed: int, parts: int) -> Trainer:
    estimator = HaloHistory(exact_first_hop=False)
    method = Method(ClusterSampler(parts=parts, how="random"), estimator)
    return Trainer(graph, network(seed), method, Training(lr=0.1, seed=seed))


@torch.no_grad()
def error_and_bound(trainer: Trainer, part: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each node of a part, both sides of the proposition for the second layer."""
    graph, (first, second) = trainer.graph, trainer.backbone.layers
    block = trainer.infer.adjacency.full_block()
    true = Exact()(0, first, block, graph.x, graph.x)
    full = Exact()(1, second, block, true, graph.x)
    stale = trainer.method.estimator.histories[0].rows[:-1].clone()
    batch = trainer.method.sampler.sample(torch.tensor([part]), trainer.rng)
    got = trainer.backbone(graph.x[batch.input_ids], batch, trainer.method.estimator)
    distance = (stale - true).norm(dim=1)
    distance[batch.target_ids] = 0  # in-batch rows are today's: the first layer reads features
    largest = torch.linalg.matrix_norm(second.linear.weight, 2)
    bound = []
    for v in batch.target_ids.tolist():
        neighbors = graph.indices[graph.indptr[v] : graph.indptr[v + 1]].long()
        bound.append(largest * distance[neighbors].sum() / max(neighbors.numel(), 1))
    return (got - full[batch.target_ids]).norm(dim=1), torch.stack(bound)


@settings(max_examples=40, deadline=None)
@given(
    num_nodes=st.integers(4, 40),
    density=st.floats(0.0, 8.0),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 100.0]),
)
def test_the_bound_holds_for_any_history(num_nodes, density, seed, scale):
    trainer = trainer_of(random_graph(num_nodes, int(density * num_nodes), seed), seed, parts=2)
    trainer.refresh_histories()
    rows = trainer.method.estimator.histories[0].rows
    rows += scale * torch.randn(rows.shape, generator=torch.Generator().manual_seed(seed))
    error, bound = error_and_bound(trainer, part=0)
    assert (error <= bound * (1 + 1e-4) + 1e-5).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_for_the_histories_that_training_leaves(seed):
    trainer = trainer_of(random_graph(80, 400, seed), seed, parts=5)
    for _ in range(3):
        trainer.epoch()
        for part in range(5):
            rows = trainer.method.estimator.histories[0].rows
            before = rows.clone()
            error, bound = error_and_bound(trainer, part)
            rows.copy_(before)
            assert (error <= bound * (1 + 1e-4) + 1e-5).all()
            assert bound.max() > 0.01  # histories are stale, so something is claimed


def test_no_smaller_constant_would_do():
    """One neighbour of two is stale by a row that the weight stretches most: both sides agree."""
    graph = random_graph(4, 0, 0)
    edges = torch.tensor([[1, 2], [0, 0]])
    masks = {"train_mask": graph.train_mask, "val_mask": graph.val_mask}
    graph = Graph.from_edges(edges, graph.x, graph.y, num_classes=3, **masks)
    trainer = trainer_of(graph, 0, parts=4)
    second = trainer.backbone.layers[1].linear
    with torch.no_grad():
        second.bias.fill_(1e3)  # far from where ReLU bends
    trainer.refresh_histories()
    stretched = torch.linalg.svd(second.weight.detach()).Vh[0]
    trainer.method.estimator.histories[0].rows[1] += 3 * stretched
    sampler = trainer.method.sampler
    batches = [sampler.sample(torch.tensor([part]), trainer.rng) for part in range(4)]
    part = next(p for p, batch in enumerate(batches) if 0 in batch.target_ids)
    error, bound = error_and_bound(trainer, part)
    torch.testing.assert_close(error, bound, rtol=1e-3, atol=1e-3)
    assert bound.max() > 0.1
