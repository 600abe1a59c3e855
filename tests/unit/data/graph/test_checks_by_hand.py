"""A graph that is made without `from_edges` is checked too."""

import pytest
import torch

from graphfm import Graph, InputError


def direct(**changes) -> Graph:
    """A graph of three nodes in a row, made without `from_edges`."""
    none = torch.zeros(3, dtype=torch.bool)
    usual = {
        "indptr": torch.tensor([0, 0, 1, 2]),
        "indices": torch.tensor([0, 1], dtype=torch.int32),
        "x": torch.ones(3, 2),
        "y": torch.tensor([0, 1, -1]),
        "num_classes": 2,
        "train_mask": none,
        "val_mask": none,
        "test_mask": none,
    }
    return Graph(**{**usual, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": torch.tensor([0, 1, 2])}, r"indptr is int64 \[3\]; expected int64 \[4\]"),
        ({"indptr": torch.tensor([0, 0, 1, 2]).int()}, r"indptr is int32"),
        ({"indptr": torch.tensor([0, 0, 1, 3])}, r"indptr does not rise"),
        ({"indptr": torch.tensor([1, 1, 1, 2])}, r"indptr does not rise"),
        ({"indptr": torch.tensor([0, 2, 1, 2])}, r"indptr does not rise"),
        ({"indices": torch.tensor([0, 1])}, r"indices is int64 \[2\]; expected int32"),
        ({"indices": torch.tensor([[0, 1]]).int()}, r"indices is int32 \[1, 2\]"),
        ({"indices": torch.tensor([0, 3]).int()}, r"indices holds node ids outside 0 to 2"),
        ({"indices": torch.tensor([0, -1]).int()}, r"indices holds node ids outside 0 to 2"),
        ({"x": torch.ones(3, 2).int()}, r"x is int32 \[3, 2\]"),
        ({"y": torch.tensor([0, 1, -1]).int()}, r"y is int32 \[3\]; expected int64 \[3\]"),
        ({"y": torch.tensor([0, 1])}, r"y is int64 \[2\]; expected int64 \[3\]"),
        ({"y": torch.zeros(3, 2).double()}, r"y is float64 \[3, 2\]; expected float32 \[3, 2\]"),
        ({"y": torch.full((3, 2), float("inf"))}, r"y holds infinite values"),
        ({"y": torch.zeros(3, 2).short()}, r"y is int16 \[3, 2\]; expected int8 \[3, 2\]"),
        ({"train_mask": torch.zeros(3)}, r"train_mask is float32 \[3\]; expected bool \[3\]"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight is float32 \[3\]; expected float32 \[2\]"),
        ({"edge_weight": torch.ones(2).double()}, r"edge_weight is float64 \[2\]"),
    ],
)
def test_a_graph_made_by_hand_is_checked_too(changes, message):
    assert direct().num_edges == 2
    with pytest.raises(InputError, match=message):
        direct(**changes)
