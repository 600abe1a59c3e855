"""graphfm datasets: what is listed, fetched and checked, and how it is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphfm.data.datasets import DATASETS
from graphfm.data.sources import catalog
from graphfm.data.sources import fetch as fetching
from graphfm.data.sources.catalog import CATALOG, Statistics
from graphfm.data.sources.download import Unreachable
from tests.unit.cli.commands import graphfm


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch) -> Path:
    """The folder of datasets; there is no network."""
    monkeypatch.setenv("GRAPHFM_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")

    def refuse(file, path, tell):
        raise Unreachable(f"{file.url} cannot be reached (no network)")

    monkeypatch.setattr(fetching, "download", refuse)
    return tmp_path


@pytest.fixture
def flickr(root, monkeypatch) -> Path:
    """Four images of Flickr, and a table that knows of them."""
    raw = root / "flickr" / "raw"
    raw.mkdir(parents=True)
    np.savez(
        raw / "adj_full.npz", data=np.ones(3), indices=[1, 0, 2], indptr=[0, 1, 3, 3, 3],
        shape=[4, 4], format=b"csr",
    )  # fmt: skip
    np.save(raw / "feats.npy", np.eye(4, 2))
    (raw / "class_map.json").write_text('{"0": 0, "1": 1, "2": 0, "3": 1}')
    (raw / "role.json").write_text('{"tr": [0, 1], "va": [2], "te": [3]}')
    small = Statistics(nodes=4, edges=3, features=2, classes=2, split=(0.5, 0.25, 0.25))
    known = replace(CATALOG["flickr"], published=small)
    monkeypatch.setattr(catalog, "CATALOG", {**CATALOG, "flickr": known})
    return root / "flickr"


def test_the_list_says_what_is_here(flickr):
    def here() -> dict[str, bool]:
        entries = json.loads(graphfm("datasets", "--json").out)
        assert [entry["name"] for entry in entries] == list(DATASETS)
        return {entry["name"]: entry["here"] for entry in entries}

    assert {name for name, yes in here().items() if not yes} == set(CATALOG)
    assert f"{CATALOG['flickr'].about} [not fetched]" in graphfm("datasets").out
    assert graphfm("datasets", "fetch", "flickr").code == 0
    assert here()["flickr"]
    assert f"{CATALOG['flickr'].about} [fetched]" in graphfm("datasets").out


def test_files_in_place_are_prepared_and_can_be_trained_on(flickr, root):
    ended = graphfm("datasets", "fetch", "flickr", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == {
        "name": "flickr", "folder": str(flickr / "graph"), "nodes": 4, "edges": 3, "features": 2,
        "classes": 2, "train": 2, "val": 1, "test": 1, "bytes": 5 * 8 + 3 * 4 + 8 * 4 + 4 * 8 + 12,
    }  # fmt: skip
    assert "4 nodes, 3 edges" in graphfm("datasets", "fetch", "flickr").out
    assert json.loads(graphfm("info", "flickr", "--json").out)["nodes"] == 4
    run = graphfm("train", "--dataset", "flickr", "--epochs", 1, "--out", root / "run", "--json")
    assert run.code == 0, run.err
    assert graphfm("evaluate", root / "run").err == ""


def test_another_root_is_given_by_option_or_environment(flickr, root, monkeypatch):
    monkeypatch.setenv("GRAPHFM_DATA", str(root / "elsewhere"))
    ended = graphfm("datasets", "fetch", "flickr", "--root", root)
    assert ended.code == 0
    assert ended.err == f"to use it: GRAPHFM_DATA={root} graphfm train --dataset flickr\n"
    assert graphfm("datasets", "check", "flickr").code == 2
    assert graphfm("datasets", "check", "flickr", "--root", root).code == 0


def test_without_a_network_every_file_is_named_with_its_place(root):
    ended = graphfm("datasets", "fetch", "yelp")
    assert (ended.code, ended.out) == (2, "")
    *listed, last = ended.err.splitlines()
    expected = []
    for file in CATALOG["yelp"].downloads:
        expected += [f"save {file.url}", f"  as {root / 'yelp' / file.path}"]
    assert listed == expected
    assert last.startswith("graphfm: https://drive.usercontent.google.com/")
    assert "cannot be reached (no network); download the files above" in last
    assert last.endswith("run 'graphfm datasets fetch yelp' again")


@pytest.mark.parametrize("command", ["info", "train", "compare", "staleness"])
def test_a_dataset_that_is_not_here_is_one_line_with_the_command(command, root):
    named = () if command == "info" else ("--dataset",)
    ended = graphfm(command, *named, "reddit")
    wanted = (
        f"reddit is not in {root / 'reddit'}; run 'graphfm datasets fetch reddit' to download it"
    )
    assert (ended.code, ended.out, ended.err) == (2, "", f"graphfm: {wanted}\n")


def test_check_prints_paper_and_dataset_side_by_side(flickr):
    graphfm("datasets", "fetch", "flickr")
    ended = graphfm("datasets", "check", "flickr")
    assert (ended.code, ended.err) == (0, "")
    head, *rows = ended.out.splitlines()
    assert head.split() == ["paper", "published", "here"]
    assert rows[0].split() == ["nodes", "89,250", "4", "4"]
    shown = json.loads(graphfm("datasets", "check", "flickr", "--json").out)["statistics"]
    by_name = {row["what"]: row for row in shown}
    assert by_name["edges as printed"] == {
        "what": "edges as printed", "paper": 899_756, "published": None, "here": 3, "agrees": True,
    }  # fmt: skip
    assert by_name["share of train nodes"]["here"] == 0.5
    assert all(row["agrees"] for row in shown)


def test_check_refuses_what_is_not_what_was_published(flickr, monkeypatch):
    graphfm("datasets", "fetch", "flickr")
    monkeypatch.setattr(catalog, "CATALOG", CATALOG)
    ended = graphfm("datasets", "check", "flickr")
    assert ended.code == 2
    assert "nodes" in ended.out
    assert "differs" in ended.out
    assert ended.err == (
        "graphfm: flickr is not the published dataset: nodes, edges in the files, features, "
        "classes differ; download it again\n"
    )


def test_check_finds_a_changed_byte(flickr):
    graphfm("datasets", "fetch", "flickr")
    path = flickr / "graph" / "x.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    ended = graphfm("datasets", "check", "flickr")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"graphfm: {path} is damaged: its digest differs")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["fetch"], "Missing argument 'NAME'"),
        (["fetch", "nope"], "unknown dataset of the paper 'nope'; choose one of flickr"),
        (["fetch", "debian"], "unknown dataset of the paper 'debian'"),
        (["check", "nope"], "unknown dataset of the paper 'nope'"),
        (["check", "debian"], "unknown dataset of the paper 'debian'"),
        (["nope"], "No such command 'nope'"),
        (["fetch", "flickr", "--root", "/dev/null"], "cannot use /dev/null"),
    ],
)
def test_wrong_commands_get_one_line(arguments, reason):
    ended = graphfm("datasets", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert reason in ended.err


@pytest.mark.parametrize("command", ["fetch", "check"])
def test_help_mentions_every_option(command):
    ended = graphfm("datasets", command, "-h")
    assert ended.code == 0
    assert "--root" in ended.out
    assert "--json" in ended.out
