"""What is saved to a file comes back as it was."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import Graph
from tests.unit.data.graph.small_graphs import edge_list, edges_of, make


@st.composite
def graphs(draw):
    """A graph with any mixture of labels, splits, weights and names."""
    n, pairs = draw(edges_of(weighted=True))
    num_classes = draw(st.integers(1, 5))
    label, split = st.integers(-1, num_classes - 1), st.sampled_from(["train", "val", "test", ""])
    y = np.array(draw(st.lists(label, min_size=n, max_size=n)))
    if multi := draw(st.booleans()) and num_classes > 1:
        bits = st.lists(st.integers(0, 1), min_size=num_classes, max_size=num_classes)
        rows = draw(st.lists(bits, min_size=n, max_size=n))
        y = np.where(y[:, None] < 0, -1, np.array(rows).reshape(n, num_classes))
    splits = np.array(draw(st.lists(split, min_size=n, max_size=n)))
    splits[(y < 0).any(axis=1) if multi else y < 0] = ""
    masks = {f"{s}_mask": splits == s for s in ("train", "val", "test") if (splits == s).any()}
    weight = [w for *_, w in pairs] if draw(st.booleans()) else None
    names = draw(st.none() | st.lists(st.text(max_size=5), min_size=n, max_size=n))
    classes = [f"class {c}" for c in range(num_classes)] if draw(st.booleans()) else None
    x = draw(
        st.lists(
            st.floats(width=32, allow_nan=False, allow_infinity=False),
            min_size=2 * n,
            max_size=2 * n,
        )
    )
    return Graph.from_edges(
        edge_list(pairs),
        np.array(x, dtype=np.float32).reshape(n, 2),
        y,
        edge_weight=weight,
        node_names=names,
        class_names=classes,
        num_classes=num_classes,
        meta={"source": "hypothesis"},
        **masks,
    )


def assert_same(one: Graph, other: Graph) -> None:
    assert one.fingerprint == other.fingerprint
    for name in ("num_classes", "multi_label", "node_names", "class_names", "meta"):
        assert getattr(one, name) == getattr(other, name), name


@settings(derandomize=True, deadline=None)
@given(graphs())
def test_a_round_trip_through_npz_keeps_everything(tmp_path_factory, graph):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    graph.save(path)
    assert_same(Graph.from_npz(path), graph)


def test_declared_classes_survive_a_round_trip(tmp_path):
    for number, y in enumerate(([0, 0, 1, 1], None)):
        path = tmp_path / f"{number}.npz"
        make(y=y, num_classes=np.int64(5)).save(path)
        assert Graph.from_npz(path).num_classes == 5


def test_names_are_kept_as_text_whatever_their_letters(tmp_path):
    names = ["zażółć", "名前", 'comma, "quote"', "line\nbreak"]
    make(y=[0, 1, 0, 1], node_names=np.array(names), class_names=["", "🐍"]).save(tmp_path / "g")
    again = Graph.from_npz(tmp_path / "g.npz")
    assert again.node_names == tuple(names)
    assert again.class_names == ("", "🐍")


def test_meta_is_copied_and_comes_back(tmp_path):
    meta = {"source": "here", "list": [1, {"two": None}]}
    graph = make(meta=meta)
    meta["list"].append("later")
    graph.save(tmp_path / "g.npz")
    assert Graph.from_npz(tmp_path / "g.npz").meta == {"source": "here", "list": [1, {"two": None}]}


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_kept_in_memory_and_read_back_as_single(tmp_path, kind):
    x = torch.tensor([[0.1], [2.0], [-3.0]]).to(kind)
    graph = Graph.from_edges([[0], [1]], x)
    assert graph.x.dtype == kind
    graph.save(tmp_path / "g.npz")
    again = Graph.from_npz(tmp_path / "g.npz")
    assert again.x.dtype == torch.float32
    assert torch.equal(again.x, x.float())
