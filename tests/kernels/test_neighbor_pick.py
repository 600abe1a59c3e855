"""Reading rows of a matrix by kernels and by plain code."""

import pytest
import torch

from graphfm.batch import offsets
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import backend
from graphfm.kernels import neighbor_pick as operations
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import StepPlan
from tests.kernels.device import DEVICE, FLOAT_TYPES, with_and_without

ADJACENCIES = {
    "mean": Adjacency.mean,
    "symmetric": Adjacency.symmetric,
    "bare": lambda graph: Adjacency(graph),
}
IDS = torch.tensor([5, 199, 5, 0, 17, 198, 60], device=DEVICE)  # twice, and isolated ones


@pytest.fixture(params=[(k, w) for k in ADJACENCIES for w in (False, True)], ids=str)
def adjacency(request, make_graph):
    kind, weighted = request.param
    graph = make_graph(num_nodes=200, num_edges=900, weighted=weighted)
    return ADJACENCIES[kind](graph.to(DEVICE))


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("fanout", [1, 2, 7, 64])
def test_the_same_neighbours_are_picked(adjacency, fanout, independent):
    """Nodes, degrees and weights bit for bit."""
    salt = torch.tensor([3 << 40], device=DEVICE)
    ours, plain = with_and_without(
        lambda: operations.pick(IDS, salt, fanout, adjacency.neighborhoods, independent)
    )
    assert torch.equal(ours.src_ids, plain.src_ids)
    assert torch.equal(ours.degree, plain.degree)
    torch.testing.assert_close(ours.weight, plain.weight, rtol=1e-6, atol=0)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("fanout", [1, 2, 7, 64])
def test_distinct_picks_are_the_picks_that_count(adjacency, fanout, independent):
    """`pick_distinct` is `pick` without those that only fill a row, in the same order."""
    salt, where = torch.tensor([3 << 40], device=DEVICE), adjacency.neighborhoods
    count, neighbor_ids, weight = operations.pick_distinct(IDS, salt, fanout, where, independent)
    every = operations.pick(IDS, salt, fanout, where, independent)
    real = torch.arange(fanout, device=DEVICE) < count.unsqueeze(1)
    assert torch.equal(count, adjacency.graph.degree[IDS].clamp(max=fanout))
    assert torch.equal(neighbor_ids, every.src_ids[IDS.numel() :][real.flatten()])
    torch.testing.assert_close(weight, every.weight[real.flatten()], rtol=1e-6, atol=0)


@pytest.mark.parametrize("independent", [False, True])
def test_more_picks_than_one_program_takes(adjacency, independent):
    ids, salt = torch.arange(200, device=DEVICE), torch.tensor([7], device=DEVICE)
    ours, plain = with_and_without(
        lambda: operations.pick(ids, salt, 3, adjacency.neighborhoods, independent)
    )
    assert ours.weight.numel() > 4 * operations.PICKS_PER_PROGRAM
    assert torch.equal(ours.src_ids, plain.src_ids)


@pytest.mark.parametrize("fanout", [2, 5, 33])
def test_independent_picks_of_hubs(make_graph, fanout):
    """Every row has more neighbours than picks."""
    graph = make_graph(num_nodes=30, num_edges=6000).to(DEVICE)
    where, ids = Adjacency.mean(graph).neighborhoods, torch.arange(25, device=DEVICE)
    assert int(graph.degree[ids].min()) > fanout
    salt = torch.tensor([11 << 33], device=DEVICE)
    ours, plain = with_and_without(lambda: operations.pick(ids, salt, fanout, where, True))
    assert torch.equal(ours.src_ids, plain.src_ids)
    torch.testing.assert_close(ours.weight, plain.weight, rtol=1e-6, atol=0)
    assert not torch.equal(ours.src_ids, operations.pick(ids, salt, fanout, where).src_ids)


@pytest.mark.parametrize("fanout", [65, 1000])
def test_a_large_fanout_is_picked_by_plain_code(adjacency, fanout, monkeypatch):
    monkeypatch.delattr(operations, "_pick_launch")
    operations.pick(IDS, torch.tensor([7], device=DEVICE), fanout, adjacency.neighborhoods)


def test_a_graph_without_edges_is_picked_by_plain_code(make_graph):
    adjacency = Adjacency.mean(make_graph(num_edges=0).to(DEVICE))
    ids = torch.arange(9, device=DEVICE)
    picks = operations.pick(ids, torch.tensor([7], device=DEVICE), 2, adjacency.neighborhoods)
    assert not picks.weight.any()
    assert not picks.degree.any()


@pytest.mark.parametrize("picks", ["even", "independent"])
@pytest.mark.parametrize("fanout", [(1,), (3, 2)])
def test_a_sampler_draws_the_same_batch(adjacency, fanout, picks):
    sampler = NeighborSampler(fanout=fanout, batch_size=9, picks=picks)
    sampler.prepare(adjacency, StepPlan(num_layers=2))
    sampler.distinct = None  # the layout of a GPU, also where this is interpreted
    ours, plain = with_and_without(
        lambda: sampler.sample(IDS, torch.Generator(DEVICE).manual_seed(3))
    )
    for block, twin in zip(ours.blocks, plain.blocks, strict=True):
        assert torch.equal(block.src_ids, twin.src_ids)
        assert torch.equal(block.degree, twin.degree)
        torch.testing.assert_close(block.edges.weight, twin.edges.weight, rtol=1e-6, atol=0)


@pytest.mark.parametrize("number", [0, 1, 90])
def test_a_block_of_all_neighbours(adjacency, number):
    ids = torch.arange(number, device=DEVICE) * 2
    ours, plain = with_and_without(lambda: adjacency.block(ids))
    for name in ("src_ids", "degree"):
        assert torch.equal(getattr(ours, name), getattr(plain, name))
    torch.testing.assert_close(vars(ours.edges), vars(plain.edges))
    torch.testing.assert_close(vars(ours.by_id), vars(plain.by_id))


def test_a_hub_takes_several_passes(make_graph):
    graph = make_graph(num_nodes=9, num_edges=3000, weighted=True).to(DEVICE)
    adjacency, ids = Adjacency.symmetric(graph), torch.arange(9, device=DEVICE)
    indptr = offsets(graph.degree)
    assert graph.degree.max() > 2 * operations.EDGES_PER_PASS
    ours, plain = with_and_without(lambda: operations.expand(ids, indptr, adjacency.neighborhoods))
    assert torch.equal(ours.neighbor_ids, plain.neighbor_ids)
    torch.testing.assert_close(ours.weight, plain.weight, rtol=1e-6, atol=0)
    assert torch.equal(ours.read.nonzero().squeeze(1), plain.neighbor_ids.unique().long())


@pytest.mark.parametrize("kind", FLOAT_TYPES)
@pytest.mark.parametrize("width", [1, 33, 300])
def test_the_sum_over_all_neighbours(adjacency, kind, width):
    table = torch.randn(201, width, device=DEVICE).to(kind)
    ours, plain = with_and_without(
        lambda: operations.sum_of_all(IDS, adjacency.neighborhoods, table)
    )
    assert ours.dtype == plain.dtype == torch.float32
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5)
    with backend.execution(kernels="plain"):
        block = adjacency.block(IDS[2:])
    dense = torch.zeros(IDS[2:].numel(), 201, device=DEVICE)
    row, col = block.edges.row.long(), block.by_id.col.long()
    dense.index_put_((row, col), block.edges.weight, accumulate=True)
    torch.testing.assert_close(plain[2:], dense @ table.float(), rtol=1e-5, atol=1e-5)
