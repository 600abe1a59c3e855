"""GraphFM-IB as published is the paper's Algorithm 1, written out node by node."""

from itertools import pairwise

import pytest
import torch

from graphfm import Graph, methods
from graphfm.backbones.gcn import GCN
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer
from tests.identities.slow_algorithm_1 import (
    BACKBONES,
    CLOSE,
    NUM_NODES,
    SEEDS,
    Fast,
    PaperGCN,
    Slow,
    check_step_by_step,
    networks,
)
from tests.unit.samplers.neighbor_batches import (
    generator,
    prepared,
    prepared_for_gpu,
    simple_graph,
)


def both(kind, *, start, beta=(0.3, 0.6), fanout=(2, 3)):
    graph, backbone = networks(kind)
    fast = Fast(graph, backbone, as_published=True, fanout=fanout, beta=beta, start=start)
    return fast, Slow(graph, backbone, beta=beta, start=start)


@pytest.mark.parametrize("fanout", [(1, 1), (2, 3)])
@pytest.mark.parametrize("start", ["zero", "fresh"])
@pytest.mark.parametrize("kind", BACKBONES)
def test_step_by_step(kind, start, fanout):
    check_step_by_step(*both(kind, start=start, fanout=fanout))


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_a_fresh_start_is_the_normalised_average_of_all_samples(beta):
    """h~ = sum_i beta (1 - beta)^(t - i) a_i / (1 - (1 - beta)^t) after t visits; zero: undivided.

    Layer 1 reads features, so a_i does not depend on the weights or on how it starts.
    """
    for start in ("fresh", "zero"):
        fast, slow = both("mean with v", start=start, beta=(beta, beta))
        for seeds in SEEDS * 2:
            slow.step(fast.sample(torch.tensor(seeds)))
            fast.step(torch.tensor(seeds))
        rows, counts = fast.history(1), set()
        for v in range(NUM_NODES):
            samples = slow.seen[1][v]
            t = len(samples)
            counts.add(t)
            total = sum(
                (beta * (1 - beta) ** (t - i) * a for i, a in enumerate(samples, start=1)),
                start=torch.zeros(5),
            )
            whole = 1 - (1 - beta) ** t if start == "fresh" and t else 1.0
            torch.testing.assert_close(rows[v], total / whole, **CLOSE)
        assert max(counts) > 6


def test_one_step_by_hand():
    """Node 0 reads nodes 1 and 2; one layer, W = I, beta = 1/4, then 1/4 again."""
    graph = Graph.from_edges(
        torch.tensor([[1, 2], [0, 0]]),
        torch.tensor([[3.0, 0.0], [6.0, 12.0], [6.0, 12.0]]),
        torch.tensor([0, 1, 0]),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, True, True]),
    )
    backbone = PaperGCN(2, 2, GCN.Settings(layers=1, dropout=0.0))
    with torch.no_grad():
        backbone.layers[0].linear.weight.copy_(torch.eye(2))
        backbone.layers[0].linear.bias.zero_()
    method = methods.graphfm_ib(as_published=True, fanout=(1,), beta=(0.25,))
    trainer = Trainer(graph, backbone, method, Training())
    outs = []
    for number in range(2):
        batch = method.sampler.sample(torch.tensor([0]), torch.Generator().manual_seed(number))
        outs.append(backbone(graph.x[batch.input_ids], batch, method.estimator).tolist())
    # A^ = 1/3 (3, 0) + 2/3 (6, 12) = (5, 8), whichever neighbour is drawn: both have that row
    assert outs[0] == [pytest.approx([1.25, 2.0])]
    assert outs[1] == [pytest.approx([0.75 * 1.25 + 1.25, 0.75 * 2.0 + 2.0])]
    kept = trainer.method.estimator.histories[0].pull(torch.arange(3))
    torch.testing.assert_close(kept, torch.tensor([[2.1875, 3.5], [0.0, 0.0], [0.0, 0.0]]))


@pytest.mark.parametrize("make", [prepared, prepared_for_gpu])
def test_what_a_layer_reads_are_the_targets_of_the_layer_below(make):
    """Algorithm 1 draws the nodes D_k of each layer; here D_{k - 1} is D_k and what it sampled."""
    graph = simple_graph(200, 9)
    batch = make(Adjacency.mean(graph), 2, 3, 2).sample(torch.tensor([3, 99, 7]), generator())
    assert torch.equal(batch.blocks[-1].dst_ids, batch.target_ids)
    for lower, upper in pairwise(batch.blocks):
        assert torch.equal(lower.dst_ids, upper.src_ids)
        sampled = upper.src_ids[upper.edges.col.long()]
        assert torch.equal(upper.src_ids[: upper.num_dst], upper.dst_ids)
        assert set(lower.dst_ids.tolist()) == {*upper.dst_ids.tolist(), *sampled.tolist()}
