"""graphfm info: what it counts, the memory it foresees, and what it warns about."""

import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfm import Graph
from graphfm.cli import main
from graphfm.data.graph.size import GraphSize
from graphfm.data.sources.folder_writer import import_graph
from graphfm.runs.memory_plan import plan_for
from graphfm.runs.run import Run


def info(*arguments) -> str:
    """What `graphfm info` prints; nothing may go to stderr."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["graphfm", "info", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    assert (end.value.code, err.getvalue()) == (0, "")
    return out.getvalue()


@pytest.fixture
def odd(tmp_path) -> Path:
    """A loop, a duplicate, an isolated node, an unlabelled node, all counted by hand."""
    Graph.from_edges(
        [[0, 0, 1, 2, 3, 4], [1, 1, 0, 2, 1, 0]],
        np.ones((6, 2)),
        [0, 0, 1, 1, -1, 0],
        train_mask=[1, 1, 0, 0, 0, 0],
        val_mask=[0, 0, 1, 0, 0, 0],
    ).save(tmp_path / "odd.npz")
    return tmp_path / "odd.npz"


def labelled(tmp_path, y, **options) -> Path:
    path = tmp_path / "labelled.npz"
    Graph.from_edges([[0], [1]], np.ones((len(y), 1)), y, **options).save(path)
    return path


def test_info_counts_right(odd):
    record = json.loads(info(odd, "--json"))
    assert record.pop("graph_bytes") == 7 * 8 + 6 * 4 + 12 * 4 + 6 * 8 + 18
    assert set(record.pop("training_bytes")) == {"full", "graphfm-ib"}
    assert record == {
        "dataset": str(odd), "nodes": 6, "edges": 6, "features": 2, "classes": 2,
        "multi_label": False, "task": "classes", "undirected": False, "self_loops": 1,
        "duplicate_edges": 1,
        "isolated_nodes": 1, "degree_mean": 1.0, "degree_median": 0, "degree_max": 3,
        "homophily": pytest.approx(4 / 5), "splits": {"train": 2, "val": 1, "test": 0},
        "unlabelled": 1, "largest_classes": [["0", 0.6], ["1", 0.4]], "label_warning": None,
        "class_counts": {"0": 3, "1": 2}, "targets": None,
    }  # fmt: skip


def test_info_for_people_says_the_same(odd):
    shown = dict(re.split(r"  +", line, maxsplit=1) for line in info(odd).splitlines())
    assert (shown["nodes"], shown["homophily"], shown["self loops"]) == ("6", "0.8", "1")
    assert (shown["undirected"], shown["train nodes"], shown["degree max"]) == ("no", "2", "3")
    assert shown["largest classes"] == "0 3 (60.0%), 1 2 (40.0%)"


@pytest.mark.parametrize("method", ["full", "graphfm-ib"])
def test_the_memory_is_that_of_the_plan_of_a_run_with_default_options(odd, method):
    size = GraphSize.of(Graph.from_npz(odd))
    plan = plan_for(Run.make(method=method), size, torch.device("cpu"))
    assert json.loads(info(odd, "--json"))["training_bytes"][method] == plan.needed > 0


def test_a_graph_without_labels_or_edges(tmp_path):
    path = tmp_path / "bare.npz"
    Graph.from_edges([[], []], np.ones((3, 1))).save(path)
    record = json.loads(info(path, "--json"))
    assert (record["homophily"], record["isolated_nodes"], record["undirected"]) == (None, 3, True)
    assert (record["training_bytes"], record["largest_classes"]) == (None, [])
    text = info(path)
    assert "not defined" in text
    assert "to train" not in text


def test_only_one_class_is_warned_about(tmp_path):
    path = labelled(tmp_path, [2, 2, 2, -1])
    assert (
        info(path)
        .splitlines()[-1]
        .startswith("warning: all labelled nodes have class 2; every model will score 1.0")
    )


def test_skewed_labels_are_warned_about(tmp_path):
    path = labelled(tmp_path, [0] * 97 + [1] * 3, class_names=["good", "bad"])
    warning = json.loads(info(path, "--json"))["label_warning"]
    assert warning.startswith("97.0% of the labelled nodes have class good; a model that always ")
    assert warning.endswith(
        "train with --class-weights balanced --metric average-precision (of class bad)"
    )
    assert "largest classes                 good 97 (97.0%), bad 3 (3.0%)\n" in info(path)


def test_shares_of_many_labels_may_add_up_to_more_than_one(tmp_path):
    path = labelled(tmp_path, [[1, 1], [0, 1], [-1, -1]])
    record = json.loads(info(path, "--json"))
    assert record["largest_classes"] == [["1", 1.0], ["0", 0.5]]
    assert record["label_warning"] is None


def test_the_targets_of_a_regression_are_described(tmp_path):
    path = labelled(tmp_path, [[0.5, 1.0], [1.5, float("nan")], [float("nan")] * 2, [2.5, 3.0]])
    record = json.loads(info(path, "--json"))
    assert (record["task"], record["classes"], record["unlabelled"]) == ("regression", 2, 1)
    first, second = record["targets"]
    assert first == {
        "name": "0", "known": 3, "missing": 1, "mean": 1.5, "std": pytest.approx((2 / 3) ** 0.5),
        "min": 0.5, "max": 2.5,
    }  # fmt: skip
    assert (second["known"], second["mean"]) == (2, 2.0)
    assert (record["homophily"], record["largest_classes"]) == (None, [])
    assert "target 1                        min 1, mean 2, max 3, std 1; 2 missing" in info(path)


@pytest.fixture
def folder(odd, tmp_path) -> Path:
    import_graph(Graph.from_npz(odd), tmp_path / "folder")
    return tmp_path / "folder"


def keep(folder, **changed) -> None:
    """Change what the folder keeps of its nodes."""
    record = json.loads((folder / "graph.json").read_text())
    record["node_summary"] |= changed
    (folder / "graph.json").write_text(json.dumps(record))


def of_folder(folder) -> dict:
    return json.loads(info(folder, "--json"))


def test_a_folder_says_the_same_as_its_graph(odd, folder):
    expected, found = json.loads(info(odd, "--json")), of_folder(folder)
    assert found.pop("homophily") == pytest.approx(expected.pop("homophily"))
    assert found | {"dataset": str(odd)} == expected


def test_a_folder_keeps_what_info_says(folder):
    keep(folder, degree_max=7, unlabelled=5, class_shares=[["one", 9, 1.0]])
    found = of_folder(folder)
    assert (found["degree_max"], found["unlabelled"]) == (7, 5)
    assert found["class_counts"] == {"one": 9}
    assert "class one" in found["label_warning"]


@pytest.mark.parametrize(
    "damage", [{"class_shares": [["0", 3]]}, {"splits": {"train": 2}}, {"class_shares": 3}]
)
def test_what_is_damaged_is_counted_again(folder, damage):
    before = of_folder(folder)
    keep(folder, **damage)
    assert of_folder(folder) == before
