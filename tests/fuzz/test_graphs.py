"""Any arrays whatever: a graph that trains, or one clear refusal."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from graphfm import Graph, InputError, train

NODES = 5
IDS = st.one_of(
    st.integers(0, NODES - 1), st.integers(-2, NODES + 1),
    st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 32, -(1 << 31), 1 << 31]),
)  # fmt: skip
KINDS = st.one_of(
    arrays.integer_dtypes(), arrays.unsigned_integer_dtypes(), arrays.floating_dtypes(),
    arrays.boolean_dtypes(), arrays.complex_number_dtypes(), arrays.datetime64_dtypes(),
    arrays.unicode_string_dtypes(max_len=3), st.just(np.dtype(object)),
)  # fmt: skip
SHAPES = st.one_of(
    st.just((NODES,)), st.just((NODES, 1)), st.just((NODES, 2)), st.just((2, 3)), st.just(()),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=NODES + 1),
)  # fmt: skip
ANYTHING = st.one_of(
    st.none(),
    st.builds(lambda kind, shape: np.zeros(shape, kind), KINDS, SHAPES),
    arrays.arrays(np.float64, SHAPES),
    arrays.arrays(np.int64, SHAPES, elements=IDS),
    st.lists(st.one_of(IDS, st.floats(), st.text(max_size=2), st.none()), max_size=NODES + 1),
    st.text(max_size=3), st.integers(), st.binary(max_size=4),
    st.dictionaries(IDS, IDS, max_size=2),
)  # fmt: skip
GOOD = {
    "edge_index": st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9).map(
        lambda pairs: torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    ),
    "x": arrays.arrays(np.float32, (NODES, 2), elements=st.floats(-9, 9, width=32)),
    "y": arrays.arrays(np.int64, NODES, elements=st.integers(0, 2)),
    "train_mask": st.just([1, 0, 1, 0, 0]),
    "val_mask": st.just([0, 1, 0, 1, 0]),
    "test_mask": st.none(),
    "edge_weight": st.none(),
    "num_classes": st.sampled_from([None, 3]),
    "class_names": st.none(),
    "node_names": st.none(),
    "meta": st.none(),
}
SETTINGS = settings(
    max_examples=300, deadline=5000, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def spoiled(draw):
    """Good arguments, of which one or two are anything."""
    arguments = {name: draw(good) for name, good in GOOD.items()}
    for name in draw(st.lists(st.sampled_from(sorted(GOOD)), min_size=0, max_size=2)):
        arguments[name] = draw(ANYTHING)
    return arguments


@SETTINGS
@given(spoiled())
def test_arrays_are_a_graph_or_are_refused(arguments):
    try:
        graph = Graph.from_edges(arguments.pop("edge_index"), arguments.pop("x"), **arguments)
    except InputError:
        return
    assert graph.num_nodes > 0
    assert bool(graph.x.isfinite().all())
    assert graph.num_edges == 0 or 0 <= int(graph.indices.min()) <= int(graph.indices.max()) < (
        graph.num_nodes
    )


@settings(SETTINGS, max_examples=40)
@given(spoiled(), st.sampled_from(["full", "graphfm-ib", "graphfm-ob", "graphsaint"]))
def test_what_is_taken_for_a_graph_trains(arguments, method):
    parts = {"parts": 1, "parts_per_batch": 1} if method == "graphfm-ob" else {}
    try:
        graph = Graph.from_edges(arguments.pop("edge_index"), arguments.pop("x"), **arguments)
        result = train(graph, method=method, hidden=3, epochs=1, device="cpu", **parts)
    except InputError:
        return
    assert all(p.isfinite().all() for p in result.model.backbone.parameters())


LABELS = {
    "negative": [-2, 0, 0, 0, 0],
    "too large": [1 << 40, 0, 0, 0, 0],
    "infinite": [float("inf"), 0, 0, 0, 0],
    "beyond float32": [1e300, 0.5, 0, 0, 0],
    "text": ["a", "b", "c", "d", "e"],
    "nothing": [None] * 5,
    "too few": [0, 1],
    "too many": [0] * 6,
    "a number": 3,
    "complex": np.zeros(5, complex),
    "objects": np.array([object()] * 5),
    "dates": np.zeros(5, "datetime64[D]"),
    "three dimensions": np.zeros((5, 1, 1), int),
    "many labels beyond one": np.full((5, 2), 2),
    "ragged": [[0, 1], [0], [1], [0], [1]],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_every_wrong_kind_are_refused(labels):
    with pytest.raises(InputError):
        Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), torch.ones(5, 2), labels)


@pytest.mark.parametrize("ids", [[[0], [-1]], [[5], [0]], [[1 << 40], [0]], [[-(1 << 63)], [0]]])
def test_ids_that_no_node_has_are_refused(ids):
    with pytest.raises(InputError, match="expected 0 to 4"):
        Graph.from_edges(ids, torch.ones(5, 2))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_features_that_are_no_numbers_are_refused(value):
    x = torch.ones(5, 2)
    x[3, 1] = value
    with pytest.raises(InputError, match="the first at node 3"):
        Graph.from_edges([[0], [1]], x)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_a_graph_of_nothing_is_refused(shape):
    with pytest.raises(InputError, match="both at least 1"):
        Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), torch.ones(shape))


@pytest.mark.parametrize("number", [1, 2, 7])
def test_nodes_without_any_edge_can_be_predicted(number):
    trained = Graph.from_edges(
        torch.zeros(2, 0, dtype=torch.int64), torch.ones(4, 2), [0, 1, 0, 1],
        train_mask=[1, 1, 0, 0], val_mask=[0, 0, 1, 1],
    )  # fmt: skip
    model = train(trained, hidden=3, epochs=1, device="cpu").model
    alone = Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), torch.ones(number, 2))
    assert model.predict(alone).shape == (number, 2)
