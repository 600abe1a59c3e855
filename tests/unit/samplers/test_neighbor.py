import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import Graph, InputError
from graphfm.data.graph.size import GraphSize
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum
from graphfm.kernels.neighbor_pick import distinct_positions, evenly_spaced, uniform_of
from graphfm.samplers.drawing.deduplicate import Deduplicate
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import COPIED, IN_PLACE, StepPlan

MARGIN = 5.0  # standard errors an average may be off; seeded, so it is met always or never
DRAWS = 2000


def paper_mean(graph):
    """The paper's mean over N_v and v itself."""
    share = 1 / (graph.degree.float() + 1)
    return Adjacency(graph, row_scale=share, self_weight=share)


ADJACENCIES = {"mean": Adjacency.mean, "symmetric": Adjacency.symmetric, "paper": paper_mean}


def prepared(adjacency, *fanout, num_layers=None, batch_size=8, **options):
    sampler = NeighborSampler(fanout=fanout, batch_size=batch_size, **options)
    sampler.prepare(
        adjacency, StepPlan(num_layers=len(fanout) if num_layers is None else num_layers)
    )
    return sampler


def prepared_for_gpu(*args, **options):
    """Of fixed shapes, as on a GPU."""
    sampler = prepared(*args, **options)
    sampler.distinct = None
    return sampler


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def everyone(graph):
    return torch.arange(graph.num_nodes)


def estimate(batch, h):
    """The batch's blocks applied one after the other, with nothing in between."""
    h = h[batch.input_ids]
    for block in batch.blocks:
        h = weighted_sum(h, block)
    return h


def exact(adjacency, h, num_layers=1):
    for _ in range(num_layers):
        h = weighted_sum(h, adjacency.full_block())
    return h


def neighbors(block):
    """[num_dst, fanout] the sampled ids."""
    return block.src_ids[block.edges.col].view(block.num_dst, -1)


def same(one, other):
    pairs = [(one.input_ids, other.input_ids), (one.target_ids, other.target_ids)]
    for a, b in zip(one.blocks, other.blocks, strict=True):
        pairs += [(a.src_ids, b.src_ids), (a.edges.col, b.edges.col)]
        pairs += [(a.edges.weight, b.edges.weight), (a.edges.indptr, b.edges.indptr)]
    return all(torch.equal(*pair) for pair in pairs)


@st.composite
def graphs(draw, least_edges=0):
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), min_size=least_edges, max_size=40))
    weighted = draw(st.booleans())
    rng = generator(draw(st.integers(0, 99)))
    return Graph.from_edges(
        torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T,
        torch.randn(n, 3, generator=rng),
        edge_weight=torch.rand(len(pairs), generator=rng) + 0.1 if weighted and pairs else None,
    )


def simple_graph(num_nodes, degree, seed=0):
    """`degree` distinct in-neighbours each, none of them the node itself."""
    rng = generator(seed)
    rank = torch.rand(num_nodes, num_nodes, generator=rng).fill_diagonal_(2.0).argsort(dim=1)
    source = rank[:, :degree].flatten()
    target = torch.arange(num_nodes).repeat_interleave(degree)
    return Graph.from_edges(torch.stack([source, target]), torch.randn(num_nodes, 3, generator=rng))


# ---- the estimate


@pytest.mark.parametrize("fanout", [(1,), (3,), (2, 1)])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_the_weighted_sum_is_unbiased(make_graph, kind, fanout):
    """Directed, weighted, with duplicates, loops and isolated nodes; over two layers as well."""
    graph = make_graph(num_nodes=40, num_edges=240, num_features=3, weighted=True)
    adjacency, rng = ADJACENCIES[kind](graph), generator(7)
    sampler, ids, h = prepared(adjacency, *fanout), everyone(graph), graph.x.double() + 2
    draws = torch.stack([estimate(sampler.sample(ids, rng), h) for _ in range(DRAWS)])
    want = exact(adjacency, h, len(fanout))
    error = (draws.mean(0) - want).abs()
    standard = draws.std(0) / DRAWS**0.5
    assert bool((error <= MARGIN * standard + 1e-6).all())
    assert int((standard > 1e-3).sum()) > graph.num_nodes  # most of it was chance indeed
    # the margin is tight enough to tell a bias: a sum too large by a tenth is noticed
    assert bool(((draws * 1.1).mean(0) - want).abs().gt(MARGIN * standard + 1e-6).any())


def test_every_edge_is_equally_likely():
    degree, fanout, draws = 7, 3, 3000
    graph = simple_graph(20, degree)
    sampler, rng, ids = prepared(Adjacency.mean(graph), fanout), generator(1), everyone(graph)
    count = torch.zeros(graph.num_nodes, graph.num_nodes)
    for _ in range(draws):
        picked = neighbors(sampler.sample(ids, rng).blocks[0])
        count[ids.unsqueeze(1), picked] += 1
    source, target = graph.edge_index
    share, chance = count[target, source] / draws, fanout / degree
    standard = (chance * (1 - chance) / draws) ** 0.5
    assert float((share - chance).abs().max()) < MARGIN * standard


@pytest.mark.parametrize("spare", [0, 3])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_exact_where_the_fanout_covers_the_degree(make_graph, kind, spare):
    graph = make_graph(weighted=True)
    adjacency, most = ADJACENCIES[kind](graph), int(graph.degree.max())
    batch = prepared(adjacency, most + spare, most).sample(everyone(graph), generator())
    torch.testing.assert_close(
        estimate(batch, graph.x), exact(adjacency, graph.x, 2), atol=1e-5, rtol=1e-5
    )


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 6), st.integers(0, 99), st.sampled_from(sorted(ADJACENCIES)))
def test_exact_for_the_nodes_with_few_neighbours(graph, fanout, seed, kind):
    adjacency = ADJACENCIES[kind](graph)
    batch = prepared(adjacency, fanout).sample(everyone(graph), generator(seed))
    few = graph.degree <= fanout
    got, want = estimate(batch, graph.x), exact(adjacency, graph.x)
    torch.testing.assert_close(got[few], want[few], atol=1e-5, rtol=1e-5)
    # and a mean stays a mean of what was picked: equal rows give that row, whoever is left out
    if kind == "mean" and graph.edge_weight is None:
        ones = estimate(batch, torch.ones(graph.num_nodes, 1)).squeeze(1)
        torch.testing.assert_close(ones, (graph.degree > 0).float())


@settings(max_examples=40, deadline=None)
@given(graphs(least_edges=1), st.integers(1, 6), st.integers(0, 99))
def test_what_is_picked_are_in_neighbours(graph, fanout, seed):
    block = prepared(Adjacency.mean(graph), fanout).sample(everyone(graph), generator(seed))
    block = block.blocks[0]
    first, ids = block.edges.indptr.tolist(), block.src_ids[block.edges.col.long()].tolist()
    for node in range(graph.num_nodes):
        true = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        row = slice(first[node], first[node + 1])
        picked, weight = ids[row], block.edges.weight[row].tolist()
        counted = [u for u, w in zip(picked, weight, strict=True) if w != 0]
        assert len(counted) == min(fanout, len(true))
        for u in set(counted):  # no edge twice
            assert counted.count(u) <= true.count(u)
        if true:
            assert set(picked) <= set(true)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 9), st.integers(0, 99))
def test_picks_without_those_that_fill_a_row(graph, fanout, seed):
    ids = torch.randint(graph.num_nodes, (12,), generator=generator(seed))
    start = uniform_of(ids, torch.tensor([seed]))
    position, factor = evenly_spaced(graph.indptr[ids], graph.degree[ids], fanout, start)
    count, found, factors = distinct_positions(graph.indptr, ids, fanout, start)
    assert torch.equal(count, graph.degree[ids].clamp(max=fanout))
    assert torch.equal(found, position[factor != 0])
    assert torch.equal(factors, factor[factor != 0])


@pytest.mark.parametrize("make", [prepared, prepared_for_gpu])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_a_fanout_beyond_every_degree_takes_all_neighbours_and_no_more(make_graph, kind, make):
    graph = make_graph(num_nodes=60, num_edges=200)
    most = int(graph.degree.max())
    seeds = torch.arange(0, 60, 7)
    large, just = (
        make(ADJACENCIES[kind](graph), fanout, num_layers=2).sample(seeds, generator())
        for fanout in (10**9, most)
    )
    assert same(large, just)
    h = torch.randn(60, 3, generator=generator())
    whole = exact(ADJACENCIES[kind](graph), h, 2)[seeds]
    torch.testing.assert_close(estimate(large, h), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("fanout", [1, 2, 5, 9, 10])
def test_picks_are_distinct(fanout):
    graph = simple_graph(25, 10)
    for seed in range(20):
        batch = prepared(Adjacency.mean(graph), fanout).sample(everyone(graph), generator(seed))
        for picked in neighbors(batch.blocks[0]).tolist():
            assert len(set(picked)) == fanout


def test_the_papers_estimate_node_by_node():
    """1 / (|N| + 1) h_v + |N| / (|N| + 1) mean(h_u : u in B_v), and v is in every time."""
    graph, fanout = simple_graph(15, 6), 2
    sampler = prepared(paper_mean(graph), fanout)
    for seed in range(20):
        batch = sampler.sample(everyone(graph), generator(seed))
        picked = neighbors(batch.blocks[0])
        want = graph.x / 7 + 6 / 7 * graph.x[picked].mean(dim=1)
        torch.testing.assert_close(estimate(batch, graph.x), want)


@pytest.mark.parametrize("kind", ["symmetric", "paper"])
def test_a_node_is_never_sampled_away_from_itself(kind):
    graph = simple_graph(15, 6)
    adjacency = ADJACENCIES[kind](graph)
    sampler, marks = prepared(adjacency, 1), torch.eye(graph.num_nodes)
    for seed in range(20):
        batch = sampler.sample(everyone(graph), generator(seed))
        own = estimate(batch, marks).diagonal()  # the weight of v's row in v's estimate
        torch.testing.assert_close(own, adjacency.self_weight)
        assert bool((own > 0).all())


# ---- odd graphs


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_an_isolated_node_keeps_to_itself(make_graph, kind, weighted):
    graph = make_graph(weighted=weighted)
    ids = torch.arange(graph.num_nodes - 3, graph.num_nodes)
    assert int(graph.degree[ids].sum()) == 0
    batch = prepared(ADJACENCIES[kind](graph), 2, 3).sample(ids, generator())
    want = torch.zeros_like(graph.x[ids]) if kind == "mean" else graph.x[ids]
    assert torch.equal(estimate(batch, graph.x), want)
    assert torch.equal(batch.blocks[-1].degree, torch.zeros(3))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_a_graph_without_edges(kind, weighted):
    graph = Graph.from_edges(
        torch.empty(2, 0, dtype=torch.long),
        torch.randn(4, 3),
        edge_weight=torch.empty(0) if weighted else None,
    )
    batch = prepared(ADJACENCIES[kind](graph), 2, 1).sample(everyone(graph), generator())
    want = torch.zeros_like(graph.x) if kind == "mean" else graph.x
    assert torch.equal(estimate(batch, graph.x), want)


def test_true_degrees_whatever_was_sampled(make_graph):
    graph = make_graph()
    batch = prepared(Adjacency.mean(graph), 1, 2).sample(everyone(graph), generator())
    for block in batch.blocks:
        assert torch.equal(block.degree, graph.degree[block.dst_ids].float())


def test_no_layers_no_blocks(make_graph):
    graph = make_graph()
    ids = torch.tensor([4, 1])
    batch = prepared(Adjacency.mean(graph), 3, num_layers=0).sample(ids, generator())
    assert batch.blocks == ()
    assert torch.equal(batch.input_ids, ids)
    assert torch.equal(batch.target_ids, ids)


# ---- shapes and chance


@settings(max_examples=40, deadline=None)
@given(graphs(), st.data())
def test_shapes_follow_from_the_number_of_seeds(graph, data):
    fanout = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    count = data.draw(st.integers(1, graph.num_nodes))
    seeds = torch.tensor(data.draw(st.permutations(range(graph.num_nodes)))[:count])
    sampler = prepared_for_gpu(Adjacency.mean(graph), *fanout, batch_size=count)
    batch = sampler.sample(seeds, generator(count))
    rows = count
    most = max(int(graph.degree.max()), 1)
    for block, wanted in zip(reversed(batch.blocks), reversed(fanout), strict=True):
        each = min(wanted, most)
        if rows * each > graph.num_nodes:  # then each neighbour is there once
            assert rows == block.num_dst
            assert block.num_src <= rows + graph.num_nodes
            neighbor_ids = block.src_ids[rows:]
            assert neighbor_ids.unique().numel() == neighbor_ids.numel()
            return
        assert (block.num_dst, block.edges.num_edges) == (rows, rows * each)
        assert block.edges.weight.shape == block.edges.col.shape
        assert torch.equal(block.edges.indptr.diff(), torch.full((rows,), each).int())
        rows *= 1 + each
        assert block.src_ids.shape == (rows,)
        assert block.num_src == rows
    assert batch.input_ids.shape == (rows,)


@settings(max_examples=30, deadline=None)
@given(graphs(), st.integers(0, 99))
def test_same_seeds_and_state_same_batch(graph, seed):
    sampler, ids = prepared(Adjacency.mean(graph), 2, 1), everyone(graph)
    first, second = generator(seed), generator(seed)
    for _ in range(3):  # nothing is remembered from one call to the next
        assert same(sampler.sample(ids, first), sampler.sample(ids, second))
    assert torch.equal(first.get_state(), second.get_state())


def test_the_neighbours_laid_beside_the_sample_do_not_change_it(make_graph):
    graph = make_graph(weighted=True)
    adjacency = Adjacency.symmetric(graph)
    plain, both = (prepared(adjacency, 2, 1, every_neighbor=flag) for flag in (False, True))
    ids = torch.tensor([3, 50, 59])
    one, other = plain.sample(ids, generator(5)), both.sample(ids, generator(5))
    assert same(one, other)
    assert (plain.views, both.views) == (frozenset(), frozenset({"full"}))
    want = exact(adjacency, graph.x)
    for without, block in zip(one.blocks, other.blocks, strict=True):
        assert without.full is None
        assert torch.equal(block.full.dst_ids, block.dst_ids)
        got = weighted_sum(graph.x[block.full.src_ids], block.full)
        torch.testing.assert_close(got, want[block.dst_ids], atol=1e-5, rtol=1e-5)


def test_a_node_that_occurs_twice_in_a_layer_sees_the_same_neighbours():
    graph = simple_graph(12, 9)
    sampler = prepared_for_gpu(Adjacency.mean(graph), 2, 2, 2)
    for seed in range(5):
        for block in sampler.sample(everyone(graph), generator(seed)).blocks:
            seen = {}
            for node, picked in zip(block.dst_ids.tolist(), neighbors(block).tolist(), strict=True):
                assert seen.setdefault(node, picked) == picked
        assert len(seen) == graph.num_nodes
    assert sampler.sample(everyone(graph), generator()).blocks[0].num_dst > graph.num_nodes


def test_layers_and_steps_see_different_neighbours():
    """Of 40 neighbours two independent picks agree one time in 40."""
    graph = simple_graph(50, 40)
    sampler, rng = prepared(Adjacency.mean(graph), 1, 1), generator()
    ids, agreed = everyone(graph), {"layers": 0.0, "steps": 0.0}
    rounds, before = 40, None
    for _ in range(rounds):
        lower, upper = sampler.sample(ids, rng).blocks
        top, bottom = neighbors(upper), neighbors(lower)[: graph.num_nodes]  # the same targets
        assert torch.equal(lower.dst_ids[: graph.num_nodes], upper.dst_ids)
        agreed["layers"] += float((top == bottom).float().mean()) / rounds
        if before is not None:
            agreed["steps"] += float((top == before).float().mean()) / rounds
        before = top
    assert all(share < 0.1 for share in agreed.values()), agreed


def test_starts_of_different_nodes_are_uniform_and_independent():
    """Chi-squared of joint counts over an 8 by 8 grid: 63 expected, 6 deviations more allowed."""
    ids = torch.tensor([0, 1, 2, 3, 4, 7, 8, 100, 1024, 65_536, 65_537, 1 << 27])
    draws, cells = 10_000, 8
    salts = torch.randint(1 << 62, (draws, 1), generator=generator())
    cell = (uniform_of(ids, salts) * cells).long()
    for first, second in torch.combinations(torch.arange(ids.numel())).tolist():
        counts = torch.bincount(cell[:, first] * cells + cell[:, second], minlength=cells**2)
        expected = draws / cells**2
        assert float(((counts - expected) ** 2 / expected).sum()) < 63 + 6 * 126**0.5


@pytest.mark.parametrize("kind", ADJACENCIES)
def test_a_crowd_of_picks_is_read_once_each_and_sums_the_same(kind, monkeypatch):
    """With and without duplicates: the same neighbours, weights and estimates."""
    graph = simple_graph(30, 12)
    adjacency, ids = ADJACENCIES[kind](graph), everyone(graph)
    few, many = (prepared_for_gpu(adjacency, 3, 2) for _ in range(2))
    small = few.sample(ids, generator())
    monkeypatch.setattr(many, "_crowded", lambda *_: False)
    large = many.sample(ids, generator())
    assert small.input_ids.numel() < large.input_ids.numel()
    torch.testing.assert_close(estimate(small, graph.x), estimate(large, graph.x))


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from(sorted(ADJACENCIES)), st.booleans(), st.data())
def test_on_a_cpu_each_node_once_and_the_same_sums(graph, kind, in_place, data):
    adjacency = ADJACENCIES[kind](graph)
    fanout = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    count = data.draw(st.integers(1, graph.num_nodes))
    seeds = torch.tensor(data.draw(st.permutations(range(graph.num_nodes)))[:count])
    sampler = NeighborSampler(fanout=fanout, batch_size=8)
    plan = StepPlan(num_layers=len(fanout), features=IN_PLACE if in_place else COPIED)
    sampler.prepare(adjacency, plan)
    batch = sampler.sample(seeds, generator(count))
    fixed = prepared_for_gpu(adjacency, *fanout).sample(seeds, generator(count))
    assert not sampler.static_shapes(GraphSize.of(graph), plan)
    assert batch.whole == in_place
    for depth, (block, other) in enumerate(zip(batch.blocks, fixed.blocks, strict=True)):
        assert block.src_ids.unique().numel() == block.src_ids.numel() == block.num_src
        assert (block.place is not None) == (in_place and depth == 0)
        assert set(block.dst_ids.tolist()) <= set(other.dst_ids.tolist())  # some only fill a row
        assert bool((block.edges.indptr.diff() <= fanout[depth]).all())
        assert torch.equal(block.degree, graph.degree[block.dst_ids].float())
    want = estimate(fixed, graph.x.double())
    torch.testing.assert_close(estimate(batch, graph.x.double()), want)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 50), st.data())
def test_distinct_ids_come_targets_first(num_nodes, data):
    nodes = st.integers(0, num_nodes - 1)
    targets = torch.tensor(data.draw(st.lists(nodes, unique=True)), dtype=torch.long)
    others = torch.tensor(data.draw(st.lists(nodes)), dtype=torch.long)
    distinct = Deduplicate(num_nodes)
    rubbish = data.draw(st.integers(-2, 60))
    distinct.position_of_node.fill_(rubbish)  # whatever an earlier call has left
    src_ids, place = distinct(targets, others)
    assert torch.equal(src_ids[: targets.numel()], targets)
    assert torch.equal(src_ids[place], others)
    assert sorted(src_ids.tolist()) == sorted({*targets.tolist(), *others.tolist()})


def test_distinct_ids_have_the_same_order_whatever_the_threads():
    ids = torch.randint(1000, (400_000,), generator=generator())
    found = [Deduplicate(1000)(ids[:0], ids)[0] for _ in range(5)]
    assert all(torch.equal(found[0], other) for other in found)
    last = {node: number for number, node in enumerate(ids.tolist())}
    assert found[0].tolist() == sorted(last, key=last.__getitem__)


# ---- epochs and settings


@pytest.mark.parametrize("batch_size", [1, 7, 20, 64])
def test_every_training_node_once_an_epoch(make_graph, batch_size):
    graph = make_graph()
    sampler, rng = prepared(Adjacency.mean(graph), 1, batch_size=batch_size), generator()
    orders = []
    for _ in range(3):
        parts = list(sampler.epoch(rng))
        assert [part.numel() for part in parts[:-1]] == [batch_size] * (len(parts) - 1)
        assert 0 < parts[-1].numel() <= batch_size
        orders.append(torch.cat(parts).tolist())
        assert sorted(orders[-1]) == graph.train_mask.nonzero().flatten().tolist()
    assert orders[0] != orders[1] != orders[2]
    again = prepared(Adjacency.mean(graph), 1, batch_size=batch_size).epoch(generator())
    assert torch.cat(list(again)).tolist() == orders[0]


def test_fanouts_are_given_input_first(make_graph):
    graph = make_graph()
    sampler = prepared_for_gpu(Adjacency.mean(graph), 5, 2)
    batch = sampler.sample(torch.tensor([1, 2]), generator())
    assert [neighbors(block).size(1) for block in batch.blocks] == [5, 2]
    alike = prepared_for_gpu(Adjacency.mean(graph), 3, num_layers=3)
    alike = alike.sample(torch.tensor([1]), generator())
    assert [neighbors(block).size(1) for block in alike.blocks] == [3, 3, 3]


@pytest.mark.parametrize("fanout", [(), (0,), (2, 0), (-1, 3)])
def test_a_bad_fanout_is_refused(fanout):
    with pytest.raises(InputError, match=r"fanout is .*; expected numbers of 1 or more"):
        NeighborSampler(fanout=fanout, batch_size=4)


@pytest.mark.parametrize("batch_size", [0, -3])
def test_a_bad_batch_size_is_refused(batch_size):
    with pytest.raises(InputError, match=f"batch_size is {batch_size}; expected 1 or more"):
        NeighborSampler(fanout=(1,), batch_size=batch_size)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_wrong_number_of_fanouts_is_refused(make_graph, num_layers):
    with pytest.raises(InputError, match=f"fanout has 2 numbers, but the network has {num_layers}"):
        prepared(Adjacency.mean(make_graph()), 4, 4, num_layers=num_layers)
