"""What y may be: classes, labels or numbers, with gaps; and that a file keeps which."""

import numpy as np
import pytest
import torch

from graphfm import Graph, InputError

NAN = float("nan")


def build(y, **options):
    return Graph.from_edges([[0], [1]], np.ones((len(y), 1)), y, **options)


@pytest.mark.parametrize(
    ("y", "task", "number"),
    [
        ([0, 1, 2], "classes", 3),
        ([0.0, 1.0, 2.0], "classes", 3),
        ([0.0, NAN, 2.0], "classes", 3),  # as pandas reads a column with a missing class
        ([[0, 1], [1, 1]], "labels", 2),
        ([[0.0, 1.0], [1.0, -1.0]], "labels", 2),  # as PyG keeps them
        ([0.5, 1.0, 2.0], "regression", 1),
        ([[0.5], [1.0], [2.0]], "regression", 1),
        ([-2.0, 1.0, 2.0], "regression", 1),
        ([0.5, NAN, 2.0], "regression", 1),
        ([[0.0, 2.0], [1.0, 1.0]], "regression", 2),
        ([[0.5, NAN], [NAN, NAN]], "regression", 2),
    ],
)
def test_the_task_follows_from_the_values(y, task, number):
    graph = build(y)
    assert (graph.task, graph.num_classes) == (task, number)
    assert graph.multi_label == (task == "labels")
    assert graph.y.is_floating_point() == (task == "regression")


def test_whole_numbers_can_be_amounts():
    for y in ([3.0, 20.0, 100.0], [3, 20, 100]):
        assert build(y, task="regression").task == "regression"
    with pytest.raises(InputError, match="unknown task 'numbers'; choose one of"):
        build([1.0, 2.0], task="numbers")
    with pytest.raises(InputError, match="not whole numbers"):
        build([0.5, 1.0], task="classes")


@pytest.mark.parametrize(
    "y",
    [
        [3.0, 20.0, 5.0],
        [0.5, NAN, 2.0],
        [[1.0, NAN], [NAN, NAN], [0.0, 0.0]],
        [[1.0], [2.0], [3.0]],
    ],
)
def test_a_file_keeps_the_numbers_of_a_regression(tmp_path, y):
    graph = build(y, task="regression", train_mask=[1, 0, 0], class_names=None)
    graph.save(tmp_path / "g.npz")
    again = Graph.from_npz(tmp_path / "g.npz")
    assert again.task == "regression"
    assert again.fingerprint == graph.fingerprint
    assert torch.equal(again.y.nan_to_num(-9), graph.y.nan_to_num(-9))
    assert again.meta == {}


def test_a_users_own_task_in_meta_stays(tmp_path):
    graph = build([0, 1, 0], meta={"task": "fraud"})
    graph.save(tmp_path / "g.npz")
    again = Graph.from_npz(tmp_path / "g.npz")
    assert (again.task, again.meta["task"]) == ("classes", "fraud")


def test_a_single_label_may_be_unknown():
    graph = build([[1, -1], [0, 1]], train_mask=[1, 0], val_mask=[0, 1])
    assert graph.y.tolist() == [[1, -1], [0, 1]]
    assert graph.train_mask.tolist() == [True, False]


def test_the_fingerprint_tells_numbers_from_classes():
    assert build([0, 1, 2]).fingerprint != build([0, 1, 2], task="regression").fingerprint


def test_it_says_what_it_holds():
    assert "3 classes" in repr(build([0, 1, 2]))
    assert "2 labels" in repr(build([[0, 1], [1, 1]]))
    assert "1 target," in repr(build([0.5, 1.5]))
    assert "2 targets," in repr(build([[0.5, 1.5], [0.5, 1.5]]))
