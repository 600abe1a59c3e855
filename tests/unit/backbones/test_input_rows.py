"""What a network reads of a graph: features, standardised, and rows made beside them."""

import pytest
import torch

from graphfm import InputError
from graphfm.backbones.input_rows import InputRows


def test_features_come_first_and_rows_of_its_own_beside_them(make_graph):
    graph = make_graph()
    for kind, width in (("degree", 18), ("random", 5), ("learned", 5)):
        inputs = InputRows(7, 60, kind=kind, width=5)
        inputs.fit(graph)
        rows = inputs(graph)
        assert rows.shape == (60, 7 + width) == (60, inputs.width)
        assert torch.equal(rows[:, :7], graph.x)
    assert torch.equal(rows[:, 7:], inputs.rows)
    assert float(inputs.rows.square().sum(dim=1).mean()) == pytest.approx(1, abs=0.2)
    random = InputRows(7, 60, kind="random", width=5, seed=2)(graph)
    assert torch.equal(random[:, 7:], graph.with_node_features("random", width=5, seed=2).x)


def test_learned_rows_follow_from_the_seed(make_graph):
    drawn = []
    for seed in (0, 0, 1):
        inputs = InputRows(0, 60, kind="learned", width=4, seed=seed)
        inputs.fit(make_graph(num_features=0))
        drawn.append(inputs.rows)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_standardised_features_have_mean_0_and_deviation_1(make_graph, dtype, monkeypatch):
    monkeypatch.setattr("graphfm.data.graph.standard.NUMBERS_AT_ONCE", 30)  # in many pieces
    graph = make_graph()
    x = graph.x * 5 + 40
    x[:, 2] = 0.1  # constant
    graph = graph.with_x(x.to(dtype))
    inputs = InputRows(7, 60, standardize=True)
    inputs.fit(graph)
    rows = inputs(graph)
    assert rows.dtype == dtype
    others = rows.double()[:, [0, 1, 3, 4, 5, 6]]
    close = {"rtol": 0, "atol": 2e-3 if dtype == torch.float16 else 1e-5}
    torch.testing.assert_close(others.mean(dim=0), torch.zeros(6).double(), **close)
    torch.testing.assert_close(others.std(dim=0), torch.ones(6).double(), **close)
    assert bool((rows[:, 2] == 0).all())


def test_a_mean_that_is_large_beside_the_deviation_is_taken_away(make_graph):
    """Seconds since 1970, a day apart: float32 would be off by a minute."""
    graph = make_graph(num_features=1)
    times = 1.7e9 + 60.0 * torch.arange(60.0, dtype=torch.float64).unsqueeze(1)
    graph = graph.with_x(times)
    inputs = InputRows(1, 60, standardize=True)
    inputs.fit(graph)
    wanted = (times - times.mean()) / times.std()
    torch.testing.assert_close(inputs(graph), wanted, rtol=0, atol=1e-9)


def test_rows_of_other_nodes_are_refused(make_graph):
    inputs = InputRows(7, 60, kind="learned")
    with pytest.raises(InputError, match=r"each of 60 nodes, and this graph has 50; .*degree"):
        inputs(make_graph(num_nodes=50))


def test_the_graph_stays_as_it_is(make_graph):
    graph = make_graph()
    before, x = graph.fingerprint, graph.x.clone()
    inputs = InputRows(7, 60, kind="learned", standardize=True)
    inputs.fit(graph)
    inputs(graph).add_(1)
    assert torch.equal(graph.x, x)
    assert graph.fingerprint == before
