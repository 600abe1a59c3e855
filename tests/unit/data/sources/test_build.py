"""From files to a folder: every preparation, in bounded memory, whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import Graph, InputError
from graphfm.data.formats.array_file import write_array
from graphfm.data.sources import build as building
from graphfm.data.sources import mapped_folder as stored
from graphfm.data.sources import standardise

FORMS = ("graphsaint", "ogb-tables", "ogb-arrays")
MOST_BYTES = 256 << 20  # the bound of docs/datasets.md, for ten million edges


def build(published, folder, form="graphsaint", **preparation) -> Graph:
    return stored.open_graph(building.build(published.source(form, **preparation), folder))


# Preparation


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("edges", ["given", "both", "symmetric"])
def test_edges_are_arranged_as_a_matrix_would_be(published, form, edges, tmp_path):
    example = published.example(9, 40, seed=3)
    published.write(form, tmp_path, example)
    graph = build(published, tmp_path, form, edges=edges)
    counts = example.counts
    wanted = {
        "given": counts,
        "both": counts + counts.T,
        "symmetric": (counts + counts.T > 0).astype(int),
    }[edges]
    targets, sources = np.nonzero(wanted)
    repeated = np.repeat([sources, targets], wanted[targets, sources], axis=1)
    assert np.array_equal(graph.edge_index.numpy(), repeated)
    assert graph.meta["raw_edges"] == 40


def test_symmetric_is_what_the_graph_calls_undirected(published, tmp_path):
    example = published.example(9, 40)
    published.tables(tmp_path, example)
    graph = build(published, tmp_path, "ogb-tables", edges="symmetric")
    other = Graph.from_edges(example.pairs.T, example.x, undirected=True)
    assert torch.equal(graph.indptr, other.indptr)
    assert torch.equal(graph.indices, other.indices)


def test_features_are_standardised_over_all_nodes_as_torch_does_it(published, tmp_path):
    example = published.example(50)
    example.x = example.x * [3.0, 1e-3, 100] + [5, -7, 1e4]
    published.saint(tmp_path, example)
    x = build(published, tmp_path, standardised=True).x
    raw = torch.from_numpy(example.x.astype("f4").astype("f8"))
    torch.testing.assert_close(x, ((raw - raw.mean(0)) / raw.std(0)).float(), rtol=1e-6, atol=1e-6)


def test_a_feature_that_never_changes_becomes_zero(published, tmp_path):
    example = published.example(50)
    example.x[:, 1] = 0.1
    published.saint(tmp_path, example)
    x = build(published, tmp_path, standardised=True).x
    assert bool((x[:, 1] == 0).all())
    assert float(x[:, 0].std()) == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 30), st.integers(0, 1000))
def test_standardising_in_pieces_is_the_same(tmp_path_factory, rows, columns, at_once, seed):
    table = np.random.default_rng(seed).normal(3, 2, (rows, columns)).astype("f4")
    path = tmp_path_factory.mktemp("x") / "x.npy"
    write_array(path, "<f4", table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphfm.data.graph.standard.NUMBERS_AT_ONCE", at_once)
        standardise.standardise(path, table.shape)
    double = table.astype("f8")
    deviation = double.std(0, ddof=1) if rows > 1 else np.inf
    expected = (double - double.mean(0)) / deviation
    np.testing.assert_allclose(np.load(path), expected, atol=1e-5)


def test_preparation_and_origin_are_kept_with_the_graph(published, tmp_path):
    published.saint(tmp_path, published.example())
    meta = build(published, tmp_path, standardised=True).meta
    assert meta["preparation"] == {"edges": "given", "standardised": True}
    assert meta["urls"][0].startswith("https://drive.usercontent.google.com/")


# Whole or not at all


def test_a_graph_that_is_there_is_not_made_again(published, tmp_path):
    published.saint(tmp_path, published.example())
    build(published, tmp_path)
    before = (tmp_path / "graph" / "graph.json").stat().st_mtime_ns
    (tmp_path / "raw" / "feats.npy").unlink()
    build(published, tmp_path)
    assert (tmp_path / "graph" / "graph.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["json", "array", "format", "preparation"])
def test_a_graph_that_cannot_be_used_is_made_again(published, tmp_path, damage):
    published.saint(tmp_path, published.example())
    wanted = build(published, tmp_path).fingerprint
    folder = tmp_path / "graph"
    record = json.loads((folder / "graph.json").read_text())
    if damage == "array":
        (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:-1])
    elif damage == "json":
        (folder / "graph.json").write_text("{")
    elif damage == "format":
        (folder / "graph.json").write_text(json.dumps(record | {"format": 0}))
    else:
        changed = record | {"preparation": {"edges": "both", "standardised": False}}
        (folder / "graph.json").write_text(json.dumps(changed))
    assert build(published, tmp_path).fingerprint == wanted
    assert {path.name for path in tmp_path.iterdir()} == {"graph", "raw"}


def test_a_graph_stays_until_a_new_one_is_finished(published, tmp_path):
    published.saint(tmp_path, published.example())
    build(published, tmp_path)
    (tmp_path / "raw" / "role.json").write_text("{")
    with pytest.raises(InputError, match="role.json"):
        build(published, tmp_path, edges="both")
    assert {path.name for path in tmp_path.iterdir()} == {"graph", "raw"}
    assert stored.open_graph(tmp_path / "graph").num_nodes == 6


BUILD = """
import sys, time
from pathlib import Path
from graphfm.data.sources import build as building, catalog
from dataclasses import replace
def tell(what, done, total):
    print(what, flush=True)
    time.sleep(60)
source = replace(catalog.CATALOG["flickr"], preparation=catalog.AS_GIVEN)
building.build(source, Path(sys.argv[1]), tell)
"""


def test_what_a_killed_build_left_is_removed_by_the_next(published, tmp_path):
    published.saint(tmp_path, published.example())
    child = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "features\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert (tmp_path / "graph.unfinished").is_dir()
    assert not (tmp_path / "graph").exists()
    build(published, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"graph", "raw"}


# Memory


MEASURED = """
import sys, time
from pathlib import Path
from graphfm.data.sources import build as building, catalog
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
before = peak()
building.build(catalog.CATALOG[sys.argv[1]], Path(sys.argv[2]))
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is not told here")
def test_ten_million_edges_are_read_in_bounded_memory(published, tmp_path):
    """As objects of 100 bytes they would be a GB, and 160 MB in one array of int64."""
    nodes, edges = 100_000, 10_000_000
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, nodes, (edges, 2), dtype=np.int32)
    pairs[:, 0].sort()  # so that writing it takes no memory either
    x = rng.normal(size=(nodes, 8)).astype(np.float32)
    split = np.resize([0, 1, 2], nodes).astype(np.int8)
    example = published.kind(pairs, x, rng.integers(0, 41, nodes), split)
    published.saint(tmp_path, example, compressed=False)
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, "reddit", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert int(ended.stdout) < MOST_BYTES, f"{ended.stdout} in {time.monotonic() - started:.1f} s"
    graph = stored.open_graph(tmp_path / "graph")
    order = np.lexsort((pairs[:, 0], pairs[:, 1]))
    assert np.array_equal(graph.indices.numpy(), pairs[order, 0])
    assert np.array_equal(graph.degree.numpy(), np.bincount(pairs[:, 1], minlength=nodes))
