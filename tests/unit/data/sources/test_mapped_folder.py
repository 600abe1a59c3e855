"""Graphs in folders: mapped, not read; and refused where they are not what was written."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from graphfm import Graph, InputError, train
from graphfm.data.formats.array_file import write_array
from graphfm.data.sources import build as building
from graphfm.data.sources import mapped_folder as stored


@pytest.fixture
def folder(published, tmp_path):
    published.saint(tmp_path, published.example(60, 300))
    return building.build(published.source("graphsaint"), tmp_path)


def edit(folder, **changes) -> None:
    path = folder / "graph.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_it_is_five_arrays_and_a_description(folder):
    names = {"graph.json", "indptr.npy", "indices.npy", "x.npy", "y.npy", "split.npy"}
    assert {path.name for path in folder.iterdir()} == names
    for name in stored.ARRAYS:
        assert np.load(folder / f"{name}.npy").size  # any program can read them


def test_it_is_a_graph_that_passes_every_check(folder):
    graph = stored.open_graph(folder)
    again = Graph.from_edges(
        graph.edge_index, graph.x, graph.y,
        train_mask=graph.train_mask, val_mask=graph.val_mask, test_mask=graph.test_mask,
    )  # fmt: skip
    assert again.fingerprint == graph.fingerprint


def test_it_can_be_trained_on_moved_and_saved(folder, tmp_path):
    graph = stored.open_graph(folder)
    digest = stored.read_record(folder)["arrays"]["x"]["sha256"]
    train(graph, epochs=2, hidden=4, device="cpu")
    graph.x[0] = 7  # of our own copy of the page
    graph.save(tmp_path / "copy.npz")
    assert float(Graph.from_npz(tmp_path / "copy.npz").x[0, 0]) == 7
    assert stored._digest(folder / "x.npy") == digest


def test_features_in_half_precision_are_read(folder):
    x = np.load(folder / "x.npy").astype("f2")
    write_array(folder / "x.npy", "<f2", x)
    record = stored.read_record(folder)
    record["arrays"]["x"]["dtype"] = "<f2"
    edit(folder, arrays=record["arrays"])
    assert stored.open_graph(folder).x.dtype == torch.float16


MAPPED = """
import sys
from pathlib import Path
from graphfm.data.sources import mapped_folder as stored
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
before = peak()
graph = stored.open_graph(Path(sys.argv[1]))
print(peak() - before, graph.x.shape[1])
"""


def test_opening_it_does_not_read_its_features(published, tmp_path):
    example = published.example(100_000, 1000)
    published.saint(tmp_path, example)
    folder = building.build(published.source("graphsaint"), tmp_path)
    write_array(folder / "x.npy", "<f4", np.zeros((100_000, 500), "f4"))  # 200 MB
    record = stored.read_record(folder)
    record["arrays"]["x"]["shape"][1] = 500
    edit(folder, arrays=record["arrays"], features=500)
    ended = subprocess.run(
        [sys.executable, "-c", MAPPED, str(folder)], capture_output=True, text=True, check=True
    )
    grown, width = map(int, ended.stdout.split())
    assert width == 500
    assert grown < 50 << 20


# Damage


@pytest.mark.parametrize("name", stored.ARRAYS)
def test_an_array_of_another_size_is_refused(folder, name):
    path = folder / f"{name}.npy"
    whole = path.read_bytes()
    for content in (whole[:-1], whole + b"x", whole[:50], b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"{name}.npy (has|is damaged)"):
            stored.open_graph(folder)
    path.unlink()
    with pytest.raises(InputError, match=f"{name}.npy is missing"):
        stored.open_graph(folder)


@pytest.mark.parametrize("name", stored.ARRAYS)
def test_an_array_of_another_type_or_shape_is_refused(folder, name):
    path = folder / f"{name}.npy"
    array = np.load(path)
    for other in (array.astype("f8"), array[:-1], np.asfortranarray(array.reshape(-1, 1))):
        np.save(path, other)
        with pytest.raises(InputError, match=f"{name}.npy holds .*; expected"):
            stored.open_graph(folder)


@pytest.mark.parametrize("name", stored.ARRAYS)
def test_an_array_with_other_contents_is_refused_by_its_digest(folder, name):
    path = folder / f"{name}.npy"
    stored.check_digests(folder, lambda *_: None)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{name}.npy is damaged: its digest"):
        stored.check_digests(folder, lambda *_: None)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2}, {"nodes": 61}, {"nodes": -1}, {"nodes": "60"}, {"edges": 299},
        {"classes": None}, {"arrays": {}}, {"arrays": []}, {"arrays": {"y": {"shape": 3}}},
    ],
)  # fmt: skip
def test_a_description_that_does_not_fit_is_refused(folder, changes):
    edit(folder, **changes)
    with pytest.raises(InputError, match="graph.json cannot be used") as error:
        stored.open_graph(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\xff", "null", "{}"])
def test_a_description_that_is_none_is_refused(folder, text):
    (folder / "graph.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="graph.json cannot be used"):
        stored.open_graph(folder)


def test_a_type_that_is_not_of_the_form_is_refused(folder):
    arrays = stored.read_record(folder)["arrays"]
    arrays["x"]["dtype"] = "|O"
    edit(folder, arrays=arrays)
    with pytest.raises(InputError, match="x is |O"):
        stored.open_graph(folder)
