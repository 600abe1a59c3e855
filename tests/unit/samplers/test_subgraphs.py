"""Induced edges, and Cluster-GCN's batch as a graph of its own."""

import pytest
import torch

from graphfm import InputError
from graphfm.backbones import make_backbone
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.cluster import ClusterSampler
from graphfm.samplers.drawing.induced_edges import InducedEdges
from graphfm.step_plan import StepPlan
from tests.unit.samplers.subgraphs import KINDS, generator, matrix, part_of


def test_induced_edges_are_those_with_both_ends_inside(make_graph):
    graph = make_graph(weighted=True)
    induced, ids = InducedEdges(graph), torch.tensor([5, 3, 40, 17, 8, 59, 22])
    for _ in range(2):  # nothing is left of the first call
        row, col, position = induced(ids)
        source, target = graph.edge_index[:, position]
        assert torch.equal(ids[row], target)
        assert torch.equal(ids[col], source)
        inside = torch.isin(graph.edge_index, ids).all(dim=0)
        assert sorted(position.tolist()) == inside.nonzero().flatten().tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_is_a_graph_of_its_own(make_graph, kind):
    graph = make_graph(weighted=True)
    sampler = ClusterSampler(parts=4, parts_per_batch=2, how="random", halo=False)
    sampler.prepare(getattr(Adjacency, kind)(graph), StepPlan(num_layers=2))
    batch = sampler.sample(torch.tensor([3, 1]), generator())
    alone = part_of(graph, batch.target_ids)
    want = getattr(Adjacency, kind)(alone).full_block()
    for block in batch.blocks:
        torch.testing.assert_close(matrix(block), matrix(want))
        assert torch.equal(block.degree, graph.degree[batch.target_ids].float())
    assert 0 < alone.num_edges < graph.num_edges


def test_the_diagonal_can_be_enhanced(make_graph):
    """A + l diag(A), for training and inference alike."""
    graph = make_graph(weighted=True)
    assert bool((graph.loop_weight > 0).any())
    plain, enhanced = (
        matrix(make_backbone("gcn", 7, 4, diagonal=d).adjacency(graph).full_block())
        for d in (0.0, 2.0)
    )
    torch.testing.assert_close(enhanced, plain + 2.0 * plain.diag().diag())
    with pytest.raises(InputError, match="diagonal is -1.0; expected 0 or more"):
        make_backbone("gcn", 7, 4, diagonal=-1.0)
