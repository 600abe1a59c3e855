import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import Graph, InputError
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.hops import hops

KINDS = [Adjacency.symmetric_without_loops, Adjacency.symmetric]
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
IN_FILES = {"most_in_memory": 0, "chunk_nodes": 7}


def counts_of(graph):
    """A[v, u]: the total weight of edges from u to v, in double precision."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    source, target = graph.edge_index
    weight = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    return matrix.index_put_((target, source), weight.double(), accumulate=True)


def reference(graph, kind, num_hops):
    matrix = counts_of(graph)
    if kind is Adjacency.symmetric:
        loops = matrix.diagonal()
        loops.copy_(torch.where(loops > 0, loops, 1.0))
    degree = matrix.sum(1)
    scale = torch.where(degree > 0, degree.clamp(min=1e-300).rsqrt(), 0.0)
    matrix, found = scale[:, None] * matrix * scale, [graph.x.double()]
    for _ in range(num_hops):
        found.append(matrix @ found[-1])
    return [rows.float() for rows in found]


def same(found, want, **close):
    assert len(found) == len(want)
    for one, other in zip(found, want, strict=True):
        torch.testing.assert_close(one, other, **close)


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"undirected": True}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_hops_are_powers_of_the_matrix(make_graph, kind, options):
    graph = make_graph(**options)
    found = hops(kind(graph), 3)
    same(found, reference(graph, kind, 3), **CLOSE)
    assert all(rows.dtype == torch.float32 for rows in found)
    if kind is Adjacency.symmetric_without_loops:
        assert bool((found[1][-3:] == 0).all())  # the last three nodes are isolated


def test_what_nobody_feeds_sends_nothing():
    """Node 0 has no in-neighbours: its degree is zero, and so is the weight of its edge."""
    graph = Graph.from_edges(torch.tensor([[0, 1, 2], [1, 2, 1]]), torch.ones(3, 1))
    (_, first) = hops(Adjacency.symmetric_without_loops(graph), 1)
    assert first.flatten().tolist() == pytest.approx([0.0, 0.5**0.5, 0.5**0.5])


@st.composite
def graphs(draw):
    num_nodes = draw(st.integers(1, 12))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=40))
    edges = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    weight = torch.rand(edges.size(1), generator=rng) + 0.1 if draw(st.booleans()) else None
    x = torch.randn(num_nodes, 3, generator=rng)
    return Graph.from_edges(edges, x, edge_weight=weight)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from(KINDS), st.integers(0, 4), st.integers(1, 5), st.integers(1, 9))
def test_any_graph_in_any_chunks(graph, kind, num_hops, chunk_nodes, chunk_edges):
    sizes = {"chunk_nodes": chunk_nodes, "chunk_edges": chunk_edges}
    same(hops(kind(graph), num_hops, **sizes), reference(graph, kind, num_hops), **CLOSE)


@pytest.mark.parametrize("chunk", [(1, 1 << 20), (7, 1 << 20), (60, 1), (25, 60)])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_and_files_are_invisible(make_graph, tmp_path, kind, chunk):
    adjacency = kind(make_graph(weighted=True))
    want = hops(adjacency, 3)
    sizes = {"chunk_nodes": chunk[0], "chunk_edges": chunk[1]}
    same(hops(adjacency, 3, **sizes), want, rtol=0, atol=0)
    same(hops(adjacency, 3, most_in_memory=0, cache=tmp_path, **sizes), want, rtol=0, atol=0)


def test_no_chunk_is_larger_than_asked(make_graph, computed):
    hops(Adjacency.symmetric(make_graph(num_nodes=200, num_edges=2000)), 1, chunk_nodes=13)
    assert max(computed) <= 13
    assert sum(computed) == 200


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_features_are_carried_in_float32(make_graph, kind):
    graph = make_graph()
    half = Graph.from_edges(graph.edge_index, graph.x.to(kind))
    found = hops(Adjacency.symmetric(half), 2)
    same(found, reference(half, Adjacency.symmetric, 2), **CLOSE)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_small_hops_leave_no_file_and_large_ones_do(make_graph, tmp_path, kind):
    graph = make_graph()
    adjacency = Adjacency.symmetric(Graph.from_edges(graph.edge_index, graph.x.to(kind)))
    size = 2 * 60 * 7 * 4
    small = hops(adjacency, 2, most_in_memory=size, cache=tmp_path)
    assert not list(tmp_path.iterdir())
    same(hops(adjacency, 2, most_in_memory=size - 1, cache=tmp_path), small, rtol=0, atol=0)
    assert len(list(tmp_path.glob("*.npy"))) == 2


def test_no_hop_is_the_features(make_graph):
    graph = make_graph()
    assert torch.equal(*hops(Adjacency.symmetric(graph), 0), graph.x)
    with pytest.raises(InputError, match="num_hops is -1; expected 0 or more"):
        hops(Adjacency.symmetric(graph), -1)


def test_without_a_place_to_write_they_are_computed_in_memory(make_graph, tmp_path, caplog):
    adjacency, blocked = Adjacency.symmetric(make_graph()), tmp_path / "file"
    blocked.write_text("no folder")
    with caplog.at_level(logging.INFO, "graphfm"):
        found = hops(adjacency, 2, cache=blocked / "folder", **IN_FILES)
    assert "the hops cannot be kept in files" in caplog.text
    same(found, hops(adjacency, 2), rtol=0, atol=0)


def test_a_full_disk_is_no_error(make_graph, tmp_path, monkeypatch, caplog):
    def full(self, hop, rows):
        raise OSError(28, "No space left on device")

    adjacency = Adjacency.symmetric(make_graph())
    monkeypatch.setattr("graphfm.data.matrix.hop_files.HopFiles.append", full)
    with caplog.at_level(logging.INFO, "graphfm"):
        same(hops(adjacency, 2, cache=tmp_path, **IN_FILES), hops(adjacency, 2), rtol=0, atol=0)
    assert "No space left" in caplog.text


def test_the_default_folder(make_graph, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHFM_CACHE", str(tmp_path))
    hops(Adjacency.symmetric(make_graph()), 1, **IN_FILES)
    assert len(list((tmp_path / "hops").glob("*.npy"))) == 1
