import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import Graph, InputError
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.out_neighbors import OutNeighbors
from graphfm.kernels import weighted_sum
from graphfm.samplers.cluster import ClusterSampler
from graphfm.step_plan import StepPlan

ADJACENCIES = {"mean": Adjacency.mean, "symmetric": Adjacency.symmetric}


def prepared(graph, parts, *, num_layers=2, adjacency=Adjacency.symmetric, **options):
    sampler = ClusterSampler(parts=parts, **options)
    sampler.prepare(adjacency(graph), StepPlan(num_layers=num_layers))
    return sampler


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batches(sampler, seed=0):
    rng = generator(seed)
    return [sampler.sample(seeds, rng) for seeds in sampler.epoch(rng)]


def graph_of(pairs, num_nodes, weight=None):
    """From (u, v), read by v from u."""
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    x = torch.arange(2.0 * num_nodes).reshape(num_nodes, 2)
    return Graph.from_edges(edges, x, edge_weight=weight)


def slow_matrix(graph, name):
    """A in float64, edge by edge: A[v, u] for each edge (u, v)."""
    n, edges = graph.num_nodes, graph.edge_index.T.tolist()
    weight = [1.0] * len(edges) if graph.edge_weight is None else graph.edge_weight.tolist()
    dense = torch.zeros(n, n, dtype=torch.float64)
    for (u, v), w in zip(edges, weight, strict=True):
        dense[v, u] += w
    if name == "symmetric":
        for v in range(n):
            if dense[v, v] == 0:
                dense[v, v] = 1.0
        scale = dense.sum(1).rsqrt()
        return scale[:, None] * dense * scale
    degree = dense.sum(1, keepdim=True)
    return dense / torch.where(degree > 0, degree, 1.0)


def reads_of(graph, nodes):
    """In-neighbours of some nodes that are not among them."""
    return {u for u, v in graph.edge_index.T.tolist() if v in nodes and u not in nodes}


def check_block(graph, block, matrix):
    """Halo, edges both ways and shares, against loops over the dense matrix."""
    nodes, halo = block.dst_ids.tolist(), block.halo_ids.tolist()
    assert len(set(nodes)) == len(nodes)
    assert len(set(halo)) == len(halo)
    assert set(halo) == reads_of(graph, set(nodes))
    torch.testing.assert_close(block.degree, graph.degree[block.dst_ids].float())
    identity = torch.eye(block.num_src)
    want = matrix[block.dst_ids][:, block.src_ids].float()
    torch.testing.assert_close(weighted_sum(identity, block), want)
    if not halo:
        assert block.from_halo is None
        return
    view = block.from_halo
    assert view.dst_ids.tolist() == halo
    assert view.src_ids.tolist() == halo + nodes
    torch.testing.assert_close(view.degree, graph.degree[block.halo_ids].float())
    want = matrix[block.halo_ids][:, view.src_ids]
    want[:, : len(halo)] = 0  # the halo reads the batch here, and not itself
    torch.testing.assert_close(weighted_sum(identity, view), want.float())
    share = want.sum(1) / matrix[block.halo_ids].sum(1)
    known = matrix[block.halo_ids].sum(1) > 0  # of a row of nothing, nobody asks for the share
    torch.testing.assert_close(view.share[known], share[known].float())


@pytest.mark.parametrize("how", ["metis", "random"])
@pytest.mark.parametrize(("parts", "each", "steps"), [(6, 1, 6), (6, 3, 2), (7, 3, 3), (5, 5, 1)])
def test_an_epoch_visits_every_node_once(make_graph, parts, each, steps, how):
    graph = make_graph()
    sampler = prepared(graph, parts, parts_per_batch=each, how=how)
    seen = batches(sampler)
    assert len(seen) == steps
    ids = torch.cat([batch.target_ids for batch in seen])
    assert ids.sort().values.tolist() == list(range(graph.num_nodes))


def test_the_last_batch_takes_the_parts_that_are_left(make_graph):
    sampler = prepared(make_graph(), 7, parts_per_batch=3)
    seeds = list(sampler.epoch(generator()))
    assert [s.numel() for s in seeds] == [3, 3, 1]
    assert sorted(torch.cat(seeds).tolist()) == list(range(7))


def test_targets_are_the_nodes_of_the_parts(make_graph):
    graph = make_graph()
    sampler = prepared(graph, 5, parts_per_batch=2)
    of_part = [sampler.sample(torch.tensor([p]), generator()).target_ids for p in range(5)]
    assert all(ids.numel() > 0 for ids in of_part)
    batch = sampler.sample(torch.tensor([4, 1]), generator())
    assert set(batch.target_ids.tolist()) == {*of_part[1].tolist(), *of_part[4].tolist()}
    other = sampler.sample(torch.tensor([1, 4]), generator())
    assert torch.equal(batch.target_ids, other.target_ids)  # in whatever order parts are drawn


def test_same_seed_same_epochs(make_graph):
    first, again = (prepared(make_graph(), 8, parts_per_batch=3) for _ in range(2))
    rng, same_rng = generator(5), generator(5)
    epochs = []
    for _ in range(3):
        ours = [s.tolist() for s in first.epoch(rng)]
        assert ours == [s.tolist() for s in again.epoch(same_rng)]
        epochs.append(str(ours))
    assert len(set(epochs)) == 3  # and each in an order of its own
    assert torch.equal(first.members, again.members)
    pairs = zip(batches(first, 1), batches(again, 1), strict=True)
    assert all(torch.equal(a.input_ids, b.input_ids) for a, b in pairs)


@pytest.mark.parametrize("num_layers", [0, 1, 3])
def test_every_layer_has_the_same_block(make_graph, num_layers):
    batch = batches(prepared(make_graph(), 4, num_layers=num_layers))[0]
    assert len(batch.blocks) == num_layers
    if num_layers == 0:
        assert torch.equal(batch.input_ids, batch.target_ids)
    for block in batch.blocks:
        assert block is batch.blocks[0]
        assert torch.equal(block.dst_ids, batch.target_ids)
        assert torch.equal(block.src_ids, batch.input_ids)


@pytest.mark.parametrize("name", ADJACENCIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
def test_the_halo_is_what_the_batch_reads(make_graph, name, weighted, undirected):
    graph = make_graph(weighted=weighted, undirected=undirected)
    matrix = slow_matrix(graph, name)
    sampler = prepared(graph, 5, parts_per_batch=2, adjacency=ADJACENCIES[name])
    sizes = []
    for batch in batches(sampler):
        check_block(graph, batch.blocks[0], matrix)
        sizes.append(batch.blocks[0].halo_ids.numel())
    assert max(sizes) > 5


@st.composite
def small_graphs(draw):
    n = draw(st.integers(2, 9))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=24))
    weight = None
    if draw(st.booleans()):
        weight = torch.tensor([draw(st.floats(0.25, 4.0, width=32)) for _ in pairs])
    if draw(st.booleans()):  # every edge in both directions, with one weight
        pairs = [*pairs, *((v, u) for u, v in pairs)]
        weight = None if weight is None else torch.cat([weight, weight])
    return graph_of(pairs, n, weight)


@settings(max_examples=60, deadline=None)
@given(graph=small_graphs(), data=st.data(), name=st.sampled_from(sorted(ADJACENCIES)))
def test_any_graph_in_any_number_of_parts(graph, data, name):
    """Loops, duplicates, one-way edges, nodes without any."""
    parts = data.draw(st.integers(1, graph.num_nodes))
    each = data.draw(st.integers(1, parts))
    options = {"how": "random", "adjacency": ADJACENCIES[name], "parts_per_batch": each}
    seen = batches(prepared(graph, parts, **options))
    assert sum(batch.target_ids.numel() for batch in seen) == graph.num_nodes
    for batch in seen:
        check_block(graph, batch.blocks[0], slow_matrix(graph, name))


def test_one_way_edges():
    """1 reads 0 and 2 reads 1: node 0 reads none, so it has no halo though 1 reads it."""
    graph = graph_of([(0, 1), (1, 2)], 3)
    sampler = prepared(graph, 3, adjacency=Adjacency.mean)
    blocks = {int(b.target_ids): b.blocks[0] for b in batches(sampler)}
    assert {v: block.halo_ids.tolist() for v, block in blocks.items()} == {0: [], 1: [0], 2: [1]}
    assert blocks[0].from_halo is None
    for v in (1, 2):  # nobody in the halo reads the batch
        view = blocks[v].from_halo
        assert view.edges.num_edges == 0
        assert weighted_sum(torch.ones(2, 1), view).tolist() == [[0.0]]


def test_two_nodes():
    graph = graph_of([(0, 1), (1, 0)], 2)
    for batch in batches(prepared(graph, 2)):
        block = batch.blocks[0]
        assert block.halo_ids.tolist() == [1 - int(batch.target_ids)]
        assert block.from_halo.share.tolist() == [pytest.approx(0.5)]  # the other half is its own


@pytest.mark.parametrize("how", ["metis", "random"])
@pytest.mark.parametrize("parts", [1, 3, 5])
def test_a_graph_without_edges(parts, how):
    graph = graph_of([], 5)
    seen = batches(prepared(graph, parts, how=how))
    assert len(seen) == parts
    for batch in seen:
        assert batch.blocks[0].num_src == batch.target_ids.numel()
        assert batch.blocks[0].from_halo is None
        assert batch.blocks[0].edges.num_edges == 0


def test_isolated_nodes_are_visited_and_have_no_halo(make_graph):
    graph = make_graph()
    sampler = prepared(graph, graph.num_nodes, how="random")
    alone = {int(b.target_ids) for b in batches(sampler) if b.blocks[0].from_halo is None}
    assert {57, 58, 59} <= alone


@pytest.mark.parametrize(("parts", "each"), [(1, 1), (4, 4)])
def test_the_whole_graph_has_no_halo(make_graph, parts, each):
    graph = make_graph()
    (batch,) = batches(prepared(graph, parts, parts_per_batch=each))
    assert batch.target_ids.numel() == graph.num_nodes
    assert batch.blocks[0].halo_ids.numel() == 0
    assert batch.blocks[0].from_halo is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parts": 0}, "^parts is 0"),
        ({"parts": -3}, "^parts is -3"),
        ({"parts": 2, "parts_per_batch": 0}, "^parts_per_batch is 0"),
        ({"parts": 2, "parts_per_batch": 3}, "^parts_per_batch is 3 and parts 2"),
    ],
)
def test_numbers_that_cannot_be(options, said):
    with pytest.raises(InputError, match=said):
        ClusterSampler(**options)


def test_more_parts_than_nodes():
    with pytest.raises(InputError, match="parts is 4.* 3 nodes"):
        prepared(graph_of([(0, 1)], 3), 4)


def test_unknown_way_to_cut(make_graph):
    with pytest.raises(InputError, match="unknown partitioner 'halves'; choose one of metis"):
        prepared(make_graph(), 2, how="halves")


@settings(max_examples=60, deadline=None)
@given(graph=small_graphs(), data=st.data())
def test_out_edges(graph, data):
    """Each edge that leaves a node, as often as the node is asked for."""
    ids = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    edges = list(enumerate(graph.edge_index.T.tolist()))
    want = [(i, v, p) for i, node in enumerate(ids) for p, (u, v) in edges if u == node]
    readers = OutNeighbors(graph)
    source, reader, position = readers.of(torch.tensor(ids, dtype=torch.int64))
    got = list(zip(source.tolist(), reader.tolist(), position.tolist(), strict=True))
    if readers.mirrored:  # positions are then those of edges back, of the same weight
        weight = [1.0] * len(edges) if graph.edge_weight is None else graph.edge_weight.tolist()
        got, want = ([(i, v, weight[p]) for i, v, p in rows] for rows in (got, want))
    assert sorted(got) == sorted(want)
    assert source.tolist() == sorted(source.tolist())


@settings(max_examples=60, deadline=None)
@given(graph=small_graphs(), name=st.sampled_from(sorted(ADJACENCIES)))
def test_row_sums(graph, name):
    sums = ADJACENCIES[name](graph).row_sums
    torch.testing.assert_close(sums, slow_matrix(graph, name).sum(1).float())
