import logging
import os
import sys

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfm import Graph
from graphfm.data.matrix.partition import PARTITIONERS, _fill_empty, partition
from graphfm.data.synthetic import Shape, synthetic
from graphfm.errors import InputError

COMMUNITIES = Shape(
    num_nodes=1200, num_edges=24_000, num_features=4, num_classes=4, split=(0.5, 0.25, 0.25)
)


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHFM_CACHE", str(tmp_path / "user"))


@pytest.fixture(scope="module")
def communities():
    """12 communities with 90 % of the edges inside."""
    return synthetic(COMMUNITIES, homophily=0.9)


@pytest.fixture
def no_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)


@pytest.fixture(params=list(PARTITIONERS))
def how(request):
    return request.param


def graph_of(edges, num_nodes, x=0.0):
    edges = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return Graph.from_edges(edges, torch.full((num_nodes, 2), x))


def cut(graph, part):
    """The share of edges between parts."""
    source, target = graph.edge_index
    return float((part[source] != part[target]).float().mean())


def check(part, num_nodes, num_parts):
    assert part.shape == (num_nodes,)
    assert part.dtype == torch.int64
    assert part.device.type == "cpu"
    assert torch.equal(part.unique(), torch.arange(num_parts))


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


def test_a_second_call_reads_the_file(communities, how, tmp_path, monkeypatch):
    first = partition(communities, 5, how=how, cache=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == len(list(tmp_path.iterdir())) == 1
    for name in PARTITIONERS:
        monkeypatch.setitem(PARTITIONERS, name, None)
    assert torch.equal(partition(communities, 5, how=how, cache=tmp_path), first)


def test_a_hit_does_not_call_metis(communities, tmp_path, monkeypatch):
    import pymetis

    first = partition(communities, 5, cache=tmp_path)
    monkeypatch.setattr(pymetis, "part_graph", None)
    assert torch.equal(partition(communities, 5, cache=tmp_path), first)


def test_what_the_file_is_named_by(tmp_path):
    def names(graph, num_parts=2, **settings):
        before = set(tmp_path.iterdir())
        partition(graph, num_parts, cache=tmp_path, **settings)
        return set(tmp_path.iterdir()) - before

    path = [(0, 1), (1, 2), (2, 3)]
    assert names(graph_of(path, 4))
    assert not names(graph_of(path, 4, x=1.0)), "features do not matter"
    assert names(graph_of([(0, 1), (1, 2), (0, 3)], 4))
    assert names(graph_of(path, 5))
    assert names(graph_of(path, 4), num_parts=3)
    assert names(graph_of(path, 4), seed=1)
    assert names(graph_of(path, 4), how="random")


def int32(*values):
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"nonsense",
        b"\x93NUMPY\x01\x00",
        b"PK\x03\x04 no zip either",
        int32(0, 1, 0),
        int32(0, 1, 0, 2),
        int32(0, -1, 0, 1),
        int32(0, 0, 0, 0),
        np.array([0, 1, 0, 1]),
        np.array([0.0, 1.0, 0.0, 1.0]),
        np.array([0, 1, 0, None], dtype=object),
        np.zeros((4, 1), dtype=np.int32),
        np.int32(1),
    ],
    ids=str,
)
def test_a_damaged_file_is_replaced(damage, tmp_path, caplog):
    graph = graph_of([(0, 1), (2, 3)], 4)
    want = partition(graph, 2, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        np.save(path, damage, allow_pickle=True)
    with caplog.at_level(logging.INFO, "graphfm"):
        assert torch.equal(partition(graph, 2, cache=tmp_path), want)
    assert "cannot be used" in caplog.text
    assert path.read_bytes() == whole


def test_a_file_cut_short_is_replaced(tmp_path):
    graph = graph_of([(0, 1), (2, 3)], 4)
    want = partition(graph, 2, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert torch.equal(partition(graph, 2, cache=tmp_path), want)
        assert path.read_bytes() == whole


def test_without_a_place_to_write_there_is_a_partition(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with caplog.at_level(logging.INFO, "graphfm"):
        check(partition(graph_of([(0, 1)], 3), 2, cache=blocked / "folder"), 3, 2)
    assert "the partition cannot be cached" in caplog.text
    assert all(record.levelno == logging.INFO for record in caplog.records)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_no_error(tmp_path):
    tmp_path.chmod(0o500)
    check(partition(graph_of([(0, 1)], 3), 2, cache=tmp_path), 3, 2)
    tmp_path.chmod(0o700)


def test_the_default_folder(tmp_path, monkeypatch):
    graph = graph_of([(0, 1)], 3)
    partition(graph, 2)
    assert len(list((tmp_path / "user" / "partitions").iterdir())) == 1
    monkeypatch.delenv("GRAPHFM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    partition(graph, 2)
    assert len(list((tmp_path / "xdg" / "graphfm" / "partitions").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    partition(graph, 2)
    assert len(list((tmp_path / "home/.cache/graphfm/partitions").iterdir())) == 1


def test_without_pymetis_an_error_says_what_to_install(no_pymetis, tmp_path):
    with pytest.raises(InputError, match="'pip install pymetis', or use --partition random"):
        partition(graph_of([(0, 1), (1, 2)], 4), 2, cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_pymetis_a_cached_partition_and_random_parts_still_work(tmp_path, monkeypatch):
    graph = graph_of([(0, 1), (1, 2)], 4)
    first = partition(graph, 2, cache=tmp_path)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert torch.equal(partition(graph, 2, cache=tmp_path), first)
    check(partition(graph, 2, how="random", cache=tmp_path), 4, 2)


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
