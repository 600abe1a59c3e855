"""Partitions: how parts are chosen, on odd graphs too, and what is refused."""

import logging
import sys

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfm.data.matrix.partition import _fill_empty, partition
from graphfm.errors import InputError
from tests.unit.data.matrix.partitions import check, graph_of

pytestmark = pytest.mark.usefixtures("user_cache")


@pytest.fixture
def no_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)


def cut(graph, part):
    """The share of edges between parts."""
    source, target = graph.edge_index
    return float((part[source] != part[target]).float().mean())


@pytest.mark.parametrize("num_parts", [2, 7, 12, 100])
def test_every_node_is_in_a_part_and_parts_are_balanced(communities, how, num_parts):
    part = partition(communities, num_parts, how=how)
    check(part, communities.num_nodes, num_parts)
    size = part.bincount()
    if how == "random":
        assert size.max() - size.min() <= 1
    else:
        assert size.max() <= 1.1 * communities.num_nodes / num_parts + 1


def test_metis_cuts_less_than_a_third_of_what_random_cuts(communities):
    by_chance = cut(communities, partition(communities, 12, how="random"))
    assert by_chance > 0.9
    assert cut(communities, partition(communities, 12)) < by_chance / 3


def test_same_seed_same_parts(communities, how, tmp_path):
    first, again, other = (
        partition(communities, 6, how=how, seed=seed, cache=tmp_path / name)
        for name, seed in [("a", 3), ("b", 3), ("c", 4)]
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_any_integer_is_a_seed(communities, how):
    for seed in (-1, 2**40):
        check(partition(communities, 3, how=how, seed=seed), communities.num_nodes, 3)


def test_one_part_needs_no_metis_and_no_file(communities, no_pymetis, tmp_path):
    part = partition(communities, 1, cache=tmp_path)
    check(part, communities.num_nodes, 1)
    assert not list(tmp_path.iterdir())


def test_without_pymetis_an_error_says_what_to_install(no_pymetis, tmp_path):
    with pytest.raises(InputError, match="'pip install pymetis', or use --partition random"):
        partition(graph_of([(0, 1), (1, 2)], 4), 2, cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_log_names_the_partitioner(caplog):
    with caplog.at_level(logging.INFO, "graphfm"):
        partition(graph_of([(0, 1), (1, 2)], 4), 2)
    (record,) = caplog.records
    assert "by metis" in record.getMessage()


def test_an_older_pymetis_is_given_plain_arrays(communities, monkeypatch):
    import pymetis

    def part_graph(num_parts, *, xadj, adjncy, options):
        assert len(adjncy) == xadj[-1]
        return 0, [node % num_parts for node in range(len(xadj) - 1)]

    monkeypatch.delattr(pymetis, "CSRAdjacency", raising=False)
    monkeypatch.setattr(pymetis, "part_graph", part_graph)
    assert torch.equal(partition(communities, 4), torch.arange(communities.num_nodes) % 4)


@pytest.mark.parametrize(
    ("edges", "num_nodes"),
    [
        ([(0, 1)], 2),
        ([], 2),
        ([], 9),
        ([(i, i) for i in range(6)], 6),
        ([(0, 1)] * 9 + [(1, 0)] * 2, 5),
        ([(i, 0) for i in range(1, 12)], 12),
        ([(i, i + 1) for i in range(11)], 14),
        ([(3, 3), (0, 1), (0, 1), (4, 2)], 8),
    ],
    ids=["pair", "two apart", "no edges", "loops", "duplicates", "star", "directed", "mixed"],
)
def test_odd_graphs(edges, num_nodes, how):
    graph = graph_of(edges, num_nodes)
    for num_parts in range(1, num_nodes + 1):
        check(partition(graph, num_parts, how=how), num_nodes, num_parts)


def test_direction_loops_and_duplicates_do_not_matter_to_metis(tmp_path):
    rng = torch.Generator().manual_seed(0)
    edges = torch.randint(50, (200, 2), generator=rng).tolist()
    more = [*edges, *([b, a] for a, b in edges), *edges[:50], *([i, i] for i in range(0, 50, 3))]
    plain, odd = graph_of(edges, 50), graph_of(more, 50)
    assert torch.equal(partition(plain, 5, cache=tmp_path), partition(odd, 5, cache=tmp_path))


def test_empty_parts_are_filled_from_the_largest():
    part = _fill_empty(np.array([3] * 8 + [1] * 3), 5)
    assert sorted(np.bincount(part).tolist()) == [2, 2, 2, 2, 3]
    assert (part[8:] == 1).all()


@pytest.mark.parametrize(("num_parts", "advice"), [(0, "more"), (-3, "more"), (5, "fewer")])
def test_a_number_of_parts_that_cannot_be(num_parts, advice, how, tmp_path):
    with pytest.raises(InputError, match=rf"parts is {num_parts}.*expected 1 to 4.*{advice}"):
        partition(graph_of([(0, 1)], 4), num_parts, how=how, cache=tmp_path)


def test_an_unknown_way(tmp_path):
    with pytest.raises(InputError, match="unknown partitioner 'scotch'; choose one of metis"):
        partition(graph_of([(0, 1)], 4), 2, how="scotch", cache=tmp_path)


@st.composite
def graphs_and_parts(draw):
    num_nodes = draw(st.integers(1, 24))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=60))
    return graph_of(edges, num_nodes), draw(st.integers(1, num_nodes))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs_and_parts(), st.integers(0, 2**32))
def test_any_graph_in_any_number_of_parts(how, tmp_path, drawn, seed):
    graph, num_parts = drawn
    part = partition(graph, num_parts, how=how, seed=seed, cache=tmp_path)
    check(part, graph.num_nodes, num_parts)
    assert torch.equal(partition(graph, num_parts, how=how, seed=seed, cache=tmp_path), part)
