"""A graph to partition, every way to do so, and hops to compute."""

import pytest

from graphfm.data.matrix import adjacency as module
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.partition import PARTITIONERS
from graphfm.data.synthetic import Shape, synthetic

COMMUNITIES = Shape(
    num_nodes=1200, num_edges=24_000, num_features=4, num_classes=4, split=(0.5, 0.25, 0.25)
)


@pytest.fixture
def user_cache(tmp_path, monkeypatch):
    """A cache for each test, which is not that of the user."""
    monkeypatch.setenv("GRAPHFM_CACHE", str(tmp_path / "user"))


@pytest.fixture(scope="module")
def communities():
    """12 communities with 90 % of the edges inside."""
    return synthetic(COMMUNITIES, homophily=0.9)


@pytest.fixture(params=list(PARTITIONERS))
def how(request):
    return request.param


@pytest.fixture
def computed(monkeypatch):
    """How many rows each call of the product computes."""
    counts, product = [], module.weighted_sum

    def counting(h, block):
        counts.append(block.num_dst)
        return product(h, block)

    monkeypatch.setattr(module, "weighted_sum", counting)
    return counts


@pytest.fixture
def adjacency(make_graph):
    return Adjacency.symmetric(make_graph(weighted=True))
