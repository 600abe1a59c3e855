"""Datasets by name: from files in place, from a server, or not at all."""

import threading
from dataclasses import replace
from urllib.error import URLError

import numpy as np
import pytest
import torch

from graphfm import InputError, load
from graphfm.data.datasets import known_size
from graphfm.data.sources import catalog
from graphfm.data.sources import fetch as fetching
from graphfm.data.sources.fetch import Missing, fetch, is_here

# Names


@pytest.mark.parametrize("name", catalog.CATALOG)
def test_a_dataset_that_is_not_here_is_said_to_be_so_in_one_line(name, root):
    assert not is_here(name, root)
    with pytest.raises(InputError) as error:
        load(name, root=root)
    command = f"run 'graphfm datasets fetch {name} --root {root}' to download it"
    assert str(error.value) == f"{name} is not in {root / name}; {command}"


@pytest.mark.parametrize("name", ["redit", "reddit:rare", "debian", "", "../reddit"])
def test_what_cannot_be_fetched_is_refused(name, root):
    with pytest.raises(
        InputError, match="unknown dataset of the paper .* choose one of flickr, reddit, yelp"
    ):
        fetch(name, root)


def test_a_near_name_is_suggested():
    with pytest.raises(InputError, match="did you mean reddit"):
        catalog.find("redit")


def test_the_folder_is_that_of_the_environment(published, root, monkeypatch, offline):
    monkeypatch.setenv("GRAPHFM_DATA", str(root))
    published.saint(root / "flickr", published.example())
    fetch("flickr")
    assert load("flickr").num_nodes == 6
    monkeypatch.delenv("GRAPHFM_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "cache"))
    with pytest.raises(InputError, match="cache/graphfm/data/flickr; run"):
        load("flickr")


# Preparation, as the paper has it


@pytest.mark.parametrize(
    ("name", "edges", "standardised"),
    [
        ("flickr", "given", False), ("reddit", "given", True), ("yelp", "given", True),
        ("arxiv", "symmetric", False), ("products", "both", False),
        ("papers100m", "symmetric", False),
    ],
)  # fmt: skip
def test_each_dataset_is_prepared_as_in_the_paper(
    published, root, name, edges, standardised, offline
):
    example = published.example(30, 80, multi_label=name == "yelp")
    source = catalog.CATALOG[name]
    options = {"split": "sales_ranking"} if name == "products" else {}
    published.write(source.form, root / name, example, **options)
    fetch(name, root)
    graph = load(name, root=root)
    counts = example.counts
    total = {
        "given": counts.sum(),
        "both": 2 * counts.sum(),
        "symmetric": (counts + counts.T > 0).sum(),
    }
    assert graph.num_edges == total[edges]
    raw = torch.from_numpy(example.x)
    wanted = (raw - raw.mean(0)) / raw.std(0) if standardised else raw
    torch.testing.assert_close(graph.x, wanted, rtol=1e-4, atol=1e-5)
    assert graph.multi_label == (name == "yelp")
    assert np.array_equal(graph.train_mask.numpy(), example.split == 0)
    assert graph.meta["preparation"] == {"edges": edges, "standardised": standardised}


def test_the_size_of_what_was_fetched_is_known_before_it_is_opened(
    published, root, monkeypatch, offline
):
    monkeypatch.setenv("GRAPHFM_DATA", str(root))
    published.saint(root / "yelp", published.example(30, 80, multi_label=True))
    assert known_size("yelp", torch.device("cpu")) is None
    fetch("yelp")
    graph = load("yelp")
    on_disk, on_gpu = (known_size("yelp", torch.device(name)) for name in ("cpu", "cuda"))
    for known in (on_disk, on_gpu):
        assert (known.num_nodes, known.num_edges) == (graph.num_nodes, graph.num_edges)
        assert (known.num_features, known.num_classes) == (graph.num_features, graph.num_classes)
        assert known.num_bytes == graph.num_bytes
        assert known.num_train == round(0.75 * graph.num_nodes)  # as published
    assert (on_disk.still_to_come, on_gpu.still_to_come) == (0, on_gpu.num_bytes)


def test_raw_is_the_dataset_without_preparation(published, root, offline):
    example = published.example(30, 80)
    published.saint(root / "reddit", example)
    fetch("reddit:raw", root)
    assert not is_here("reddit", root)
    assert np.array_equal(load("reddit:raw", root=root).x.numpy(), example.x)
    fetch("reddit", root)
    assert not np.array_equal(load("reddit", root=root).x.numpy(), example.x)
    assert is_here("reddit:raw", root)


# Files in place


def test_files_in_place_are_prepared_and_not_downloaded(published, root, offline):
    published.saint(root / "flickr", published.example())
    folder = fetch("flickr", root)
    assert folder == root / "flickr" / "graph"
    assert offline == []
    assert is_here("flickr", root)


def test_what_is_missing_is_listed_path_by_path(published, root, offline):
    published.saint(root / "flickr", published.example())
    for name in ("feats.npy", "role.json"):
        (root / "flickr" / "raw" / name).unlink()
    with pytest.raises(Missing) as error:
        fetch("flickr", root)
    raw, files = root / "flickr" / "raw", catalog.CATALOG["flickr"].downloads
    assert error.value.files == [
        (raw / "feats.npy", files[1].url),
        (raw / "role.json", files[3].url),
    ]
    for path, url in error.value.files:
        assert f"{url} as {path}" in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(root.rglob("*.unfinished"))


def test_of_ogb_one_archive_is_missing(root, offline):
    with pytest.raises(Missing) as error:
        fetch("papers100m", root)
    url = "http://snap.stanford.edu/ogb/data/nodeproppred/papers100M-bin.zip"
    assert error.value.files == [(root / "papers100m" / "papers100M-bin.zip", url)]


@pytest.mark.parametrize("name", ["flickr", "arxiv"])
def test_where_nothing_can_be_got_nothing_is_left(tmp_path, monkeypatch, name):
    def offline(*given, **named):
        raise URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    with pytest.raises(Missing, match="no network"):
        fetch(name, tmp_path / "new" / "root")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, offline):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot use .*file.*; choose another folder with --root"):
        fetch("flickr", tmp_path / "file")


# Downloads


def test_files_are_downloaded_each_to_its_place(published, root, tmp_path, monkeypatch):
    published.saint(tmp_path / "there", published.example())
    got = []

    def download(file, path, tell):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((tmp_path / "there" / file.path).read_bytes())
        got.append(file.path)

    monkeypatch.setattr(fetching, "download", download)
    fetch("flickr", root)
    assert got == list(catalog.CATALOG["flickr"].files)
    assert load("flickr", root=root).num_nodes == 6
    fetch("flickr", root)
    assert len(got) == 4


def test_two_at_once_make_it_once(published, root, monkeypatch):
    published.saint(root / "flickr", published.example())
    made, real = [], fetching.build.__globals__["_build"]
    monkeypatch.setitem(fetching.build.__globals__, "_build", lambda *a: (made.append(1), real(*a)))
    threads = [threading.Thread(target=fetch, args=("flickr", root)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert load("flickr", root=root).num_nodes == 6


def test_a_graph_of_another_preparation_is_said_to_be_so(published, root, monkeypatch, offline):
    published.saint(root / "flickr", published.example())
    fetch("flickr", root)
    other = replace(catalog.CATALOG["flickr"], preparation=catalog.CATALOG["reddit"].preparation)
    monkeypatch.setattr(catalog, "CATALOG", {"flickr": other})
    with pytest.raises(InputError, match="was prepared differently; run 'graphfm datasets"):
        load("flickr", root=root)


def test_a_damaged_graph_says_what_to_do(published, root, offline):
    published.saint(root / "flickr", published.example())
    (fetch("flickr", root) / "x.npy").write_bytes(b"")
    with pytest.raises(InputError, match=r"x.npy is damaged.*; run 'graphfm datasets fetch flickr"):
        load("flickr", root=root)
    fetch("flickr", root)
    assert load("flickr", root=root).num_nodes == 6
