"""Graphs are made from arrays of any type, and from PyG's data."""

import dataclasses

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from graphfm import Graph, InputError
from tests.unit.data.graph.small_graphs import TRIANGLE, make, neighbours


@pytest.mark.parametrize(
    "kind", ["<i4", ">i4", "<i8", ">i8", "<f8", ">f8", "<f4", "u1", "<u2", "<u4", "<u8", "?", "g"]
)
def test_features_of_any_number_type_become_single_precision(kind):
    x = np.array([[0, 1], [1, 0], [1, 1]]).astype(kind)
    graph = Graph.from_edges([[0], [1]], x)
    assert graph.x.dtype == torch.float32
    assert graph.x.tolist() == [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "kind", [torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int16]
)
def test_tensors_of_any_integer_type_are_taken(kind):
    edges, y = torch.tensor(TRIANGLE).to(kind), torch.tensor([[0, 1]] * 4).to(kind)
    graph = make(edges, y=y, train_mask=torch.ones(4).to(kind))
    assert neighbours(graph) == neighbours(make())
    assert graph.y.tolist() == [[0, 1]] * 4
    assert graph.train_mask.all()


def test_arrays_that_lie_oddly_in_memory_are_taken():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    frozen = x.copy()
    frozen.flags.writeable = False
    for odd in (np.asfortranarray(x), np.ascontiguousarray(x[::-1])[::-1], frozen):
        graph = Graph.from_edges(TRIANGLE, odd)
        assert graph.fingerprint == Graph.from_edges(TRIANGLE, x).fingerprint


def test_gradients_are_left_behind():
    graph = Graph.from_edges(TRIANGLE, torch.ones(3, 2, requires_grad=True))
    assert not graph.x.requires_grad


def test_features_in_half_precision(make_graph):
    graph = make_graph()
    half = graph.with_features(torch.float16)
    assert half.x.dtype == torch.float16
    assert half.fingerprint != graph.fingerprint
    assert graph.with_features(torch.float32) is graph
    large = dataclasses.replace(graph, x=graph.x * 1e6)
    with pytest.raises(InputError, match=r"torch.float16 holds at most .* use --features bf16"):
        large.with_features(torch.float16)
    assert large.with_features(torch.bfloat16).x.isfinite().all()


# PyG


def test_from_pyg_takes_all_that_a_data_holds():
    data = Data(
        x=torch.eye(3),
        edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]),
        y=torch.tensor([[0], [1], [-1]]),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, True, False]),
        edge_weight=torch.tensor([1.0, 2.0, 3.0]),
    )
    graph = Graph.from_pyg(data)
    assert neighbours(graph) == [[1], [0], [1]]
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.edge_weight.tolist() == [2.0, 1.0, 3.0]
    assert [int(graph.mask(split).sum()) for split in ("train", "val", "test")] == [1, 1, 0]


def test_from_pyg_takes_many_float_labels():
    y = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=y)
    assert Graph.from_pyg(data).y.tolist() == [[0, 1], [1, 1]]


def test_what_pyg_data_holds_and_a_graph_does_not_use_is_named(caplog):
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    Graph.from_pyg(data)
    assert caplog.records == []
    data.pos = torch.ones(2, 3)
    assert Graph.from_pyg(data).num_edges == 1
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("graphfm", "WARNING")
    assert record.getMessage().startswith("the PyG data: pos is not used")


@pytest.mark.parametrize(
    ("data", "culprit"),
    [
        (Data(edge_index=torch.zeros(2, 0, dtype=torch.long)), "no x"),
        (Data(x=torch.ones(2, 1)), "no edge_index and no adj_t"),
        (HeteroData(), "no x"),
        (None, "no x"),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])),
            "edge_index holds node id 2",
        ),
    ],
)
def test_from_pyg_says_what_is_missing_or_wrong(data, culprit):
    with pytest.raises(InputError, match=culprit):
        Graph.from_pyg(data)
