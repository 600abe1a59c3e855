"""GraphSAGE (Hamilton et al., 2017) with the mean: the mean of the sampled neighbours' rows."""

import pytest
import torch

from graphfm import methods
from tests.papers.slow import (
    GRAPHS,
    Fast,
    Matrix,
    Network,
    by_edges,
    learned,
    mean_loss,
    networks,
    small_graph,
)


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
def test_step_by_step(kind, layers, directed, weighted):
    """Equal weights: the mean over the sample. In general, n(v) / r times each entry."""
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone, matrix = networks(kind, graph, layers), Matrix(kind, weight_of)
    network = Network(kind, backbone)
    fast = Fast(graph, backbone, methods.graphsage(fanout=(2,), batch_size=4))
    for seeds in ([1, 5, 2], [0, 13, 3], [6, 7, 8, 9], [1, 0, 12]):
        got = fast.step(seeds)
        h = {v: graph.x[v].double() for v in got[0].blocks[0].src_ids.tolist()}
        for depth, block in enumerate(got[0].blocks):
            out = {}
            for v, edges in by_edges(block).items():
                n, sample = len(matrix.neighbors(v)), list(edges)
                assert len(sample) == min(n, 2)
                assert set(sample) <= set(matrix.neighbors(v))
                rows = [h[u] for u in sample]
                if kind == "sage" and not weighted:
                    z = sum(rows, start=0 * h[v]) / max(len(rows), 1)
                else:
                    terms = [n / len(sample) * matrix.edges[v, u] * h[u] for u in sample]
                    z = sum(terms, start=matrix.own[v] * h[v])
                out[v] = network.update(depth, z, h[v])
            h = out
        rows = torch.stack([h[v] for v in seeds])
        learned(fast, network, rows, mean_loss(graph, seeds, rows), got)
