"""A small graph with weights, whose edges go both ways."""

import pytest


@pytest.fixture
def graph(make_graph):
    return make_graph(undirected=True, weighted=True)
