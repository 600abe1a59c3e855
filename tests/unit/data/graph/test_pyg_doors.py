"""What goes to PyG and comes back is what it was."""

import dataclasses
import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.transforms import ToSparseTensor

from graphfm import Graph, InputError

TYPES = st.sampled_from([torch.float32, torch.float64, torch.int64, torch.uint8])


@st.composite
def data_objects(draw):
    """A `Data` with unsorted, directed and doubled edges, and any mixture of attributes."""
    n, count = draw(st.integers(1, 6)), draw(st.integers(0, 12))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 999)))

    def integers(high, *shape):
        return torch.randint(high, shape, generator=rng)

    data = Data(edge_index=integers(n, 2, count))
    if draw(st.booleans()):
        data.x = integers(9, n, 2).to(draw(st.sampled_from([torch.float32, torch.float16])))
    elif draw(st.booleans()):
        data.x = integers(9, n, 3).to(draw(TYPES))
    else:
        data.num_nodes = n
    if draw(st.booleans()):
        width = draw(st.sampled_from([(), (1,), (3,)]))
        data.y = integers(2, n, *width).to(draw(TYPES))
        if data.y.is_floating_point() and n > 4:  # a regression, or gaps
            data.y[4] = draw(st.sampled_from([0.5, -7.0, float("nan")]))
        part = torch.arange(n) % 4
        part[4:] = 3  # a node without a label would leave its split
        for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
            if bool((part == number).any()):
                data[name] = part == number
    if draw(st.booleans()):
        data.edge_weight = torch.rand(count, generator=rng) + 0.1
    if draw(st.booleans()):
        width = draw(st.sampled_from([(), (1,), (2, 2)]))
        data.edge_attr = integers(9, count, *width).to(draw(TYPES))
    if draw(st.booleans()):
        data.edge_type = integers(3, count)
    if draw(st.booleans()):
        data.node_names = [f"node {number}" for number in range(n)]
    return data


@settings(derandomize=True, deadline=None, max_examples=200)
@given(data_objects())
def test_to_pyg_undoes_from_pyg(data):
    again = Graph.from_pyg(data).to_pyg()
    assert sorted(again.keys()) == sorted(data.keys())
    for key, value in data:
        if isinstance(value, torch.Tensor):
            assert again[key].dtype == value.dtype, key
            assert torch.equal(again[key].nan_to_num(-99), value.nan_to_num(-99)), key
        else:
            assert again[key] == value


def test_precision_that_is_lost_is_named(caplog):
    data = Data(x=torch.tensor([[0.5], [2.0**40]]).double(), edge_index=torch.tensor([[0], [1]]))
    data.y, data.edge_weight = torch.tensor([0.25, float("nan")]).double(), torch.ones(1).double()
    with caplog.at_level(logging.WARNING, "graphfm"):
        assert torch.equal(Graph.from_pyg(data).to_pyg().x, data.x)
        assert not caplog.text
        data.x[0], data.y[0] = 0.1, 0.1
        again = Graph.from_pyg(data).to_pyg()
    assert len(caplog.records) == 1
    assert "x (float64), y (float64): some values are rounded to float32" in caplog.text
    assert again.x.dtype == torch.float64
    assert torch.equal(again.x, data.x.float().double())


def test_attributes_stay_with_their_edges(tmp_path):
    source, target = torch.tensor([[2, 0, 1, 0, 0], [0, 2, 0, 1, 1]])
    attr, kind = torch.stack([source, target], dim=1) * 1.5, source * 10 + target
    data = Data(x=torch.eye(3), edge_index=torch.stack([source, target]))
    data.edge_attr, data.edge_type = attr, kind
    graph = Graph.from_pyg(data)
    graph.save(tmp_path / "g.npz")
    for one in (graph, Graph.from_npz(tmp_path / "g.npz"), dataclasses.replace(graph)):
        assert torch.equal(one.edge_attr, one.edge_index.T * 1.5)
        assert torch.equal(one.edge_type, one.edge_index[0] * 10 + one.edge_index[1])
    bare = Graph.from_edges(data.edge_index, data.x)
    assert graph.fingerprint == bare.fingerprint  # what no training reads does not count


def matrices(data: Data) -> list:
    source, target = data.edge_index
    shape, ones = (3, 3), torch.ones(source.numel())
    coo = torch.sparse_coo_tensor(torch.stack([target, source]), ones, shape, check_invariants=True)
    return [coo, coo.to_sparse_csr(), coo.to_sparse_csc(), SparseTensor(target, source, None)]


class SparseTensor:
    """What the class of torch_sparse offers, which is not installed here."""

    def __init__(self, *parts):
        self.parts = parts

    def coo(self):
        return self.parts


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("number", range(4))
def test_an_adjacency_of_any_kind_is_read_as_the_edges_are(number):
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0, 2], [1, 2, 1]]))
    expected = Graph.from_pyg(data)
    data.adj_t = matrices(data)[number]
    with pytest.raises(InputError, match="both edge_index and adj_t; delete one"):
        Graph.from_pyg(data)
    del data.edge_index
    assert Graph.from_pyg(data).fingerprint == expected.fingerprint


@pytest.mark.filterwarnings("ignore:Sparse")  # of PyG's own tensor
def test_values_of_an_adjacency_are_weights():
    weight = torch.tensor([2.0, 1.0, 3.0])
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0, 2], [1, 2, 1]]), edge_weight=weight)
    expected = Graph.from_pyg(data)
    sparse = ToSparseTensor(attr="edge_weight")(data.clone())
    assert "edge_index" not in sparse
    assert Graph.from_pyg(sparse).fingerprint == expected.fingerprint
    sparse.edge_weight = weight
    with pytest.raises(InputError, match="edge_weight and values in adj_t"):
        Graph.from_pyg(sparse)


@pytest.mark.parametrize(("adjacency", "message"), [
    (torch.eye(3), "adj_t is a dense tensor"),
    ("text", "adj_t is a str; expected a SparseTensor"),
])  # fmt: skip
def test_another_kind_of_adjacency_is_refused(adjacency, message):
    with pytest.raises(InputError, match=message):
        Graph.from_pyg(Data(x=torch.eye(3), adj_t=adjacency))


@pytest.mark.parametrize(("wrong", "message"), [
    ({"edge_attr": torch.ones(2)}, r"edge_attr has shape \(2,\); expected \[1, ...\]"),
    ({"edge_type": torch.tensor([0.5])}, "edge_type is float32 .*expected whole numbers"),
    ({"edge_type": torch.tensor([[1]])}, "edge_type is int64 .*expected whole numbers"),
    ({"edge_attr": torch.ones(1), "undirected": True}, "undirected merges edges"),
    ({"num_nodes": 3}, "but num_nodes is 3; leave num_nodes out"),
    ({"x": None, "num_nodes": 0}, "num_nodes is 0; expected a whole number"),
    ({"x": None, "num_nodes": 1 << 40}, "num_nodes is 1099511627776; expected a whole number"),
    ({"x": None}, "neither x nor num_nodes is given"),
])  # fmt: skip
def test_what_does_not_belong_to_the_edges_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Graph.from_edges(**{"edge_index": [[0], [1]], "x": torch.ones(2, 1), **wrong})


def test_a_record_of_types_is_not_believed():
    graph = Graph.from_edges([[0], [1]], torch.ones(2, 1), [0, 1])
    for record in (1, {"types": 3}, {"types": {"y": "load"}, "columns": 7}, {"columns": {"y": 1}}):
        again = dataclasses.replace(graph, meta={"pyg": record}).to_pyg()
        assert torch.equal(again.y, torch.tensor([0, 1]))
