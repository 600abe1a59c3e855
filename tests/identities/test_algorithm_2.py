"""GraphFM-OB is the paper's Algorithm 2, written out node by node."""

import pytest
import torch

from graphfm import Graph, methods
from graphfm.backbones.gcn import GCN
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer
from tests.identities.slow_algorithm_2 import BACKBONES, PARTS, agree, both


def graphfm_ob(**options):
    return methods.graphfm_ob(parts=PARTS, parts_per_batch=2, exact_first_hop=False, **options)


@pytest.mark.parametrize("start", ["zero", "fresh"])
@pytest.mark.parametrize("threshold", [0, 1])
@pytest.mark.parametrize("partial", ["sum", "rescaled"])
@pytest.mark.parametrize("kind", BACKBONES)
def test_step_by_step(kind, partial, threshold, start):
    paper = {"beta": (0.3, 0.6), "partial": partial, "threshold": threshold, "start": start}
    fast, slow = both(kind, graphfm_ob(**paper), **paper)
    agree(fast, slow)
    assert slow.blended >= 10
    assert (slow.spared > 0) == (threshold > 0)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", BACKBONES)
def test_step_by_step_with_weights_and_one_way_edges(kind, directed):
    paper = {"beta": (0.4, 0.4), "partial": "rescaled", "start": "zero"}
    method = graphfm_ob(**paper | {"beta": (0.4,)})  # one number stands for all layers
    options = {"directed": directed, "weighted": True, "residual": True}
    fast, slow = both(kind, method, **options, **paper)
    agree(fast, slow)
    assert slow.blended >= 10


@pytest.mark.parametrize("reach", ["read", "all"])
@pytest.mark.parametrize("kind", BACKBONES)
def test_on_a_directed_graph_every_node_that_reads_the_batch_moves(kind, reach):
    """Algorithm 2 moves each v with S_v not empty; `reach="read"` moves those that are read."""
    paper = {"beta": (0.4, 0.4), "partial": "rescaled", "start": "zero", "reach": reach}
    method = graphfm_ob(**paper | {"beta": (0.4,)})
    fast, slow = both(kind, method, directed=True, weighted=True, **paper)
    agree(fast, slow)
    assert (slow.unread > 0) == (reach == "read")


@pytest.mark.parametrize("method", ["gas", "graphfm-ob"])
@pytest.mark.parametrize("kind", BACKBONES)
def test_momentum_of_zero_is_gnnautoscale(kind, method):
    beta = {"beta": (0.0,)} if method == "graphfm-ob" else {}
    method = methods.METHODS[method](parts=PARTS, exact_first_hop=False, **beta)
    agree(*both(kind, method, beta=(0.0, 0.0)))


def test_the_next_layer_reads_the_halo_as_it_was_just_moved():
    """At the first step every history is zero: what else could the batch read of its halo?"""
    first = {}
    for beta in (0.0, 0.5):
        fast, _ = both("gcn", graphfm_ob(beta=(beta,)), beta=(beta, beta))
        first[beta] = fast.step([0])[0]
    assert (first[0.0] - first[0.5]).abs().max() > 1e-3


class PaperGCN(GCN):
    """sigma(W mean(h_u : u in N_v and v))"""

    def adjacency(self, graph):
        share = 1 / (graph.degree.float() + 1)
        return Adjacency(graph, row_scale=share, self_weight=share)


@pytest.mark.parametrize(
    ("partial", "start", "moved", "out"),
    [("sum", "zero", 0.5, 1.75), ("rescaled", "zero", 1.5, 2.25), ("sum", "fresh", 2.0, 2.5)],
)
def test_one_step_by_hand(partial, start, moved, out):
    """A path 0 - 1 - 2; the batch is node 0, its halo node 1; W = I, beta = 1/4."""
    graph = Graph.from_edges(
        torch.tensor([[0, 1], [1, 2]]),
        torch.tensor([[6.0, 0.0], [0.0, 12.0], [9.0, 9.0]]),
        torch.tensor([0, 1, 0]),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, True, True]),
        undirected=True,
    )
    backbone = PaperGCN(2, 2, GCN.Settings(layers=2, hidden=2, dropout=0.0))
    for layer in backbone.layers:
        torch.nn.init.eye_(layer.linear.weight)
        torch.nn.init.zeros_(layer.linear.bias)
    options = {"beta": (0.25,), "partial": partial, "start": start, "exact_first_hop": False}
    method = methods.graphfm_ob(parts=3, parts_per_batch=1, **options)
    trainer = Trainer(graph, backbone, method, Training())
    sampler = method.sampler
    part = next(p for p in range(3) if sampler.members[sampler.bounds[p]] == 0)
    batch = sampler.sample(torch.tensor([part]), trainer.rng)
    got = backbone(graph.x[batch.input_ids], batch, method.estimator)
    history = method.estimator.histories[0].pull(torch.arange(3))
    # node 0 has ((6, 0) + (0, 12)) / 2; of node 1 the batch sees (6, 0) / 3, a third of its weight
    torch.testing.assert_close(history, torch.tensor([[3.0, 6.0], [moved, 0.0], [0.0, 0.0]]))
    torch.testing.assert_close(got, torch.tensor([[out, 3.0]]))  # their mean
