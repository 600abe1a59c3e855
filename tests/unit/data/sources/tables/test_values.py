"""Encodings, labels and splits: what a column becomes."""

import numpy as np
import pytest
import torch

from graphfm import InputError
from graphfm.data.sources.tables.encodings import Encoding, encode
from graphfm.data.sources.tables.request import Split
from tests.unit.data.sources.tables.writing import RING, imported, pairs, people

EDGES = pairs(people(), RING)


def features(tmp_path, values, encoding, **more):
    rows = [{**row, "v": value} for row, value in zip(people(), values, strict=True)]
    graph, report = imported(tmp_path, rows, EDGES, node_features={"v": encoding}, **more)
    return graph.x, report["features"][0], graph.meta["encodings"][0]


NUMBERS = [None, *map(float, range(10)), "NA"]


def test_standard_has_mean_0_and_deviation_1_and_says_what_is_missing(tmp_path):
    x, shown, kept = features(tmp_path, NUMBERS, "standard", node_missing=("NA",))
    known = x[1:11, 0]
    assert torch.allclose(known.mean(), torch.tensor(0.0), atol=1e-6)
    assert torch.allclose(known.std(correction=0), torch.tensor(1.0), atol=1e-6)
    assert (x[0].tolist(), x[11].tolist(), x[1, 1]) == ([0, 1], [0, 1], 0)
    assert (shown["missing"], shown["width"], kept["fitted"]["mean"]) == (2, 2, 4.5)


def test_min_max_lies_between_0_and_1(tmp_path):
    x, _, _ = features(tmp_path, range(2, 14), "min-max")
    assert torch.allclose(x[:, 0], torch.arange(12) / 11)


def test_rank_gauss_is_normal_whatever_the_distribution(tmp_path):
    x, _, _ = features(tmp_path, [10.0**n for n in range(12)], "rank-gauss")
    ranks = np.clip(np.arange(12) / 11, 1e-4, 1 - 1e-4)
    expected = torch.special.ndtri(torch.from_numpy(ranks)).float()
    assert torch.allclose(x[:, 0], expected, atol=0.15)
    assert bool((x[1:, 0] > x[:-1, 0]).all())


def test_rank_gauss_gives_equal_values_their_middle_rank(tmp_path):
    x, _, _ = features(tmp_path, [0] * 6 + [1] * 6, "rank-gauss")
    assert torch.allclose(x[0, 0], -x[-1, 0], atol=0.02)
    assert 0.4 < float(x[-1, 0]) < 0.9  # the middle of the upper half is at 0.67


def test_one_hot_has_a_column_for_each_value(tmp_path):
    x, _, kept = features(tmp_path, ["b", "a", None] * 4, "one-hot")
    assert kept["fitted"]["values"] == ["a", "b"]
    assert x[:3].tolist() == [[0, 1], [1, 0], [0, 0]]


def test_buckets_are_equally_full(tmp_path):
    x, _, _ = features(tmp_path, range(12), "buckets:3")
    assert x.sum(dim=0).tolist() == [4, 4, 4]
    assert (x.sum(dim=1) == 1).all()


def test_booleans_and_constants(tmp_path):
    x, _, _ = features(tmp_path, ["true", "False", "1"] * 4, "boolean")
    assert x[:3, 0].tolist() == [1, 0, 1]
    values, missing = np.full(3, 7.0), np.zeros(3, bool)
    for kind, fitted in (
        ("standard", {"mean": 7.0, "deviation": 0.0}),
        ("min-max", {"low": 7.0, "high": 7.0}),
    ):
        assert encode(Encoding("c", kind, 1, fitted=fitted), values, missing).tolist() == [[0]] * 3


@pytest.mark.parametrize(
    ("values", "encoding", "reason"),
    [
        (["x"] * 12, "standard", "'v' holds 'x'; standard expects finite numbers"),
        (["inf"] * 12, "min-max", "'v' holds 'inf'"),
        (["maybe"] * 12, "boolean", "expects true or false"),
        ([None] + [1] * 11, "as-is", "1 row has no 'v'"),
        (["1e39"] * 12, "as-is", "NaN or too large"),
        ([None] * 12, "one-hot", "has no values"),
        (range(12), "one-hit", "did you mean one-hot"),
        (range(12), "buckets:1", "expected buckets:N"),
        (range(12), "standard:3", "expected buckets:N"),
    ],
)
def test_values_that_an_encoding_cannot_take(tmp_path, values, encoding, reason):
    with pytest.raises(InputError, match=reason):
        features(tmp_path, values, encoding)
    assert not list(tmp_path.glob(".graph*"))
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize("last", [[1.0], [1.0, None], None, ["x", 1.0]])
def test_lists_must_be_equally_long_numbers(tmp_path, last):
    with pytest.raises(InputError, match="'v' holds"):
        features(tmp_path, [[1.0, 2.0]] * 11 + [last], "as-is", form="jsonl")


# Labels and splits


def labelled(tmp_path, labels, **more):
    rows = [{**row, "y": label} for row, label in zip(people(), labels, strict=True)]
    more.setdefault("node_features", {"vip": "boolean"})
    return imported(tmp_path, rows, EDGES, node_label="y", **more)[0]


def test_numbers_are_classes_in_their_order(tmp_path):
    graph = labelled(tmp_path, [100, 20, None] * 4)
    assert graph.class_names == ("20", "100")
    assert graph.y[:3].tolist() == [1, 0, -1]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_lists_are_many_labels(tmp_path, form):
    text = form == "csv"
    lists = [["b"], ["a", "b"], None, ["c"]] * 3
    given = [None if own is None else "|".join(own) for own in lists] if text else lists
    more = {"node_label_separator": "|"} if text else {}
    graph = labelled(tmp_path, given, form=form, **more)
    assert graph.class_names == ("a", "b", "c")
    assert graph.y[:4].tolist() == [[0, 1, 0], [1, 1, 0], [-1, -1, -1], [0, 0, 1]]


def test_a_column_is_the_split(tmp_path):
    graph, _ = imported(tmp_path, people(), EDGES, node_label="kind", node_split="fold")
    assert graph.train_mask.tolist() == [True, False, False] * 4
    assert graph.test_mask.tolist() == [False, False, True] * 4


def parts(graph):
    return [int(graph.mask(name).sum()) for name in ("train", "val", "test")]


def test_shares_follow_the_seed_and_leave_out_nodes_without_a_label(tmp_path):
    masks = []
    for place, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / place).mkdir()
        split = Split(train=0.5, val=0.3, seed=seed)
        graph = labelled(tmp_path / place, ["x", "y", "x"] * 3 + [None, "x", "x"], node_split=split)
        assert parts(graph) == [6, 3, 2]
        masks.append(graph.train_mask.tolist())
    assert masks[0] == masks[1] != masks[2]


def test_a_stratified_split_has_the_shares_in_each_class(tmp_path):
    split = Split(train=0.5, val=0.25, test=0.25, stratified=True)
    graph = labelled(tmp_path, ["x"] * 8 + ["y"] * 4, node_split=split)
    for label, counts in ((0, [4, 2, 2]), (1, [2, 1, 1])):
        own = graph.y == label
        found = [int((graph.mask(name) & own).sum()) for name in ("train", "val", "test")]
        assert found == counts


@pytest.mark.parametrize("date", [False, True])
def test_by_time_the_oldest_train_and_equal_times_stay_together(tmp_path, date):
    rows = [{**row, "year": f"{row['year']}-03-01" if date else row["year"]} for row in people()]
    split = Split(train=0.5, val=0.25, time="year")
    graph, _ = imported(tmp_path, rows, EDGES, node_label="kind", node_split=split)
    assert graph.train_mask.tolist() == [n < 6 for n in range(12)]
    assert graph.test_mask.tolist() == [n >= 10 for n in range(12)]  # 2004 is one year
    assert parts(graph) == [6, 4, 2]
