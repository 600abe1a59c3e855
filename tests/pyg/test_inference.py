"""Inference in chunks of targets is the network's own forward, with fewer messages at a time."""

import pytest
import torch

from graphfm.pyg.guards import in_mode
from graphfm.pyg.watching import convolutions
from tests.pyg.graphs import make_graph
from tests.pyg.harness import TOLERANCE, by_pyg, distance, examined, wrapped
from tests.pyg.zoo import ZOO

CHUNK = 40


@pytest.fixture
def counted():
    """Counts the messages of each propagation of a network, while the test runs."""
    handles, sizes = [], []

    def count(net):
        for conv in convolutions(net).values():
            dim = conv.node_dim
            hook = lambda conv, given, out, dim=dim: sizes.append(out.size(dim))  # noqa: E731
            handles.append(conv.register_message_forward_hook(hook))
        return sizes

    yield count
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("name", ZOO)
def test_in_chunks_it_is_the_same(name, counted):
    model, graph = examined(name)
    sizes = counted(model.net)
    with torch.no_grad():
        exact = by_pyg(model, graph, name)
        whole = max(sizes, default=0)
        sizes.clear()
        found = model.infer(model.adjacency(graph), graph.x, len(model.layers), CHUNK)
    assert distance(found, exact) < TOLERANCE
    most = max(CHUNK, int(graph.degree.max()) + 1)  # a target with more edges has all of them
    assert max(sizes, default=0) <= most
    assert whole > 2 * most or name == "no convolution" or ZOO[name].data == ("edge_type",)


@pytest.mark.parametrize("name", ["GAT v2", "PNA edges", "GCNConv weighted", "RGATConv"])
@pytest.mark.parametrize("shape", [{"num_edges": 31}, {"num_nodes": 41}, {"plain": True}])
def test_in_chunks_it_is_the_same_on_other_graphs(name, shape, counted):
    torch.manual_seed(0)
    graph = make_graph(*ZOO[name].data, **shape)
    model = wrapped(ZOO[name].make(), graph)
    sizes = counted(model.net)
    with torch.no_grad(), in_mode(model.net, False):
        exact = by_pyg(model, graph, name)
        for chunk in (1, 7, 41, graph.num_edges):  # 41: as many edges as there may be nodes
            sizes.clear()
            found = model.infer(model.adjacency(graph), graph.x, len(model.layers), chunk)
            assert distance(found, exact) < TOLERANCE
            assert max(sizes) <= max(chunk, int(graph.degree.max()) + 1)
