"""Weights of edges are summed in chunks of nodes, and no chunk changes a sum."""

import pytest
import torch

from graphfm.data.graph import degrees


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("at_once", [1, 7, 60])
def test_chunks_change_nothing(make_graph, monkeypatch, weighted, at_once):
    graph = make_graph(weighted=weighted)
    whole = graph.weighted_degree, graph.loop_weight
    monkeypatch.setattr(degrees, "NODES_AT_ONCE", at_once)
    assert torch.equal(graph.weighted_degree, whole[0])
    assert torch.equal(graph.loop_weight, whole[1])
    source, target = graph.edge_index
    weight = graph.edge_weight if weighted else torch.ones(graph.num_edges)
    loops = torch.zeros(graph.num_nodes).index_add_(0, target, weight * (source == target))
    torch.testing.assert_close(graph.loop_weight, loops)
    assert bool((loops > 0).any())
