from importlib.resources import files

import pytest

from graphfm import InputError, load
from graphfm.data.graph.summary import summarize


@pytest.fixture(scope="module")
def debian():
    return load("debian")


def test_the_graph_of_debian_is_inside_the_package_and_small():
    assert 0 < (files("graphfm.data") / "debian.npz").stat().st_size <= 8_000_000


def test_debian_is_what_it_is_said_to_be(debian):
    summary = summarize(debian)
    assert 60_000 < summary["nodes"] < 70_000
    assert summary["classes"] == len(debian.class_names) == 51
    assert summary["undirected"]
    assert summary["self_loops"] == summary["duplicate_edges"] == 0
    assert summary["splits"]["train"] == summary["nodes"] // 2
    assert summary["unlabelled"] == 0


def test_debian_knows_its_packages_and_where_it_comes_from(debian):
    assert {"python3", "bash", "libc6"} <= set(debian.node_names)
    assert list(debian.node_names) == sorted(debian.node_names)
    assert {"python", "games", "libs"} <= set(debian.class_names)
    for key in ("source", "edges", "features", "split", "license", "built_by"):
        assert debian.meta[key]


def test_debian_packages_depend_on_what_they_should(debian):
    place = {name: node for node, name in enumerate(debian.node_names)}
    pairs = set(map(tuple, debian.edge_index.T.tolist()))
    assert (place["libc6"], place["bash"]) in pairs
    assert (place["0ad"], place["0ad-data"]) in pairs
    assert (place["0ad"], place["bash"]) not in pairs


@pytest.mark.parametrize("name", ["redit", "debian.csv", ""])
def test_an_unknown_name_is_refused_with_the_list(name):
    with pytest.raises(InputError, match="choose one of debian, flickr, .*synthetic:small"):
        load(name)


def test_a_misspelt_name_gets_the_nearest():
    with pytest.raises(InputError, match=r"\(did you mean debian\?\)"):
        load("debain")
