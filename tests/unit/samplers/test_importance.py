import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.drawing.importance import (
    Chances,
    Inclusion,
    as_chances,
    column_chances,
    inclusion,
)

MARGIN = 5.0  # standard errors


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def dense(adjacency):
    block = adjacency.full_block()
    matrix = torch.zeros(block.num_dst, block.num_src, dtype=torch.float64)
    index = (block.edges.row.long(), block.edges.col.long())
    matrix.index_put_(index, block.edges.weight.double(), accumulate=True)
    return matrix


@pytest.mark.parametrize("kind", ["mean", "symmetric"])
def test_chances_are_squared_norms_of_columns(make_graph, kind):
    """Of a graph without duplicate edges, whose entries would be squared one by one."""
    graph = make_graph(weighted=True, undirected=True)
    adjacency = getattr(Adjacency, kind)(graph)
    found = column_chances(adjacency).double()
    want = dense(adjacency).square().sum(dim=0)
    torch.testing.assert_close(found / found.sum(), want / want.sum(), rtol=1e-5, atol=1e-9)


def test_columns_are_added_up_in_chunks(make_graph, monkeypatch):
    adjacency = Adjacency.mean(make_graph(weighted=True))
    want = column_chances(adjacency)
    monkeypatch.setattr("graphfm.samplers.drawing.importance.CHUNK", 7)
    assert torch.equal(column_chances(adjacency), want)


def test_what_is_possible_stays_possible():
    chances = as_chances(torch.tensor([1.0, 0.0, 1e-30]))
    assert chances[0] > chances[2] > 0 == chances[1]
    assert as_chances(torch.zeros(3)).tolist() == [0, 0, 0]


def test_draws_are_unbiased():
    weight = torch.tensor([5.0, 0.0, 1.0, 2.0, 0.5, 7.0])
    value, rng, found = torch.arange(6.0) + 1, generator(), []
    for _ in range(4000):
        ids, factor = Chances(as_chances(weight)).draw(3, rng)
        assert 1 not in ids.tolist()
        assert (ids.diff() > 0).all()
        found.append((value[ids] * factor).sum())
    found = torch.stack(found).double()
    want = value[weight > 0].sum()
    assert abs(found.mean() - want) < MARGIN * found.std() / len(found) ** 0.5


def test_a_budget_that_covers_all_takes_all():
    ids, factor = Chances(torch.tensor([3, 0, 1, 9])).draw(3, generator())
    assert ids.tolist() == [0, 2, 3]
    assert factor.tolist() == [1, 1, 1]


@settings(max_examples=100, deadline=None)
@given(size=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40), number=st.integers(1, 50))
def test_inclusion_probabilities_add_up(size, number):
    size = torch.tensor(size, dtype=torch.float64)
    found = inclusion(size, number)
    assert bool(((found > 0) & (found <= 1)).all())
    assert float(found.sum()) == pytest.approx(min(number, size.numel()), rel=1e-9)
    below = found < 1  # in proportion to size, wherever that is possible
    ratio = found[below] / size[below]
    torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1000), number=st.integers(1, 19))
def test_a_systematic_sample_has_a_fixed_size(seed, number):
    rng = generator(seed)
    probability = inclusion(torch.rand(20, generator=rng, dtype=torch.float64) + 0.01, number)
    picked = Inclusion(probability, rng).draw(rng)
    assert abs(picked.numel() - number) <= 1  # one of rounding to whole shares
    assert picked.unique().numel() == picked.numel()


def test_a_sample_includes_by_probability_in_one_order_too():
    """Within an epoch the order stays, and only the start is drawn."""
    probability = torch.tensor([1.0, 0.5, 0.25, 0.75, 0.05, 0.45], dtype=torch.float64)
    rng, draws, count = generator(), 4000, torch.zeros(6)
    chosen = Inclusion(probability, rng)
    for _ in range(draws):
        count[chosen.draw(rng)] += 1
    error = (probability * (1 - probability) / draws).sqrt()
    assert bool(((count / draws - probability).abs() <= MARGIN * error).all())


def test_a_systematic_sample_includes_by_probability():
    probability = torch.tensor([1.0, 0.5, 0.25, 0.75, 0.05, 0.45], dtype=torch.float64)
    rng, draws, count = generator(), 4000, torch.zeros(6)
    for _ in range(draws):
        count[Inclusion(probability, rng).draw(rng)] += 1
    error = (probability * (1 - probability) / draws).sqrt()
    assert bool(((count / draws - probability).abs() <= MARGIN * error).all())
