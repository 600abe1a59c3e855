"""Partitions are kept in files, and made again where a file is damaged."""

import logging
import os
import sys

import numpy as np
import pytest
import torch

from graphfm.data.matrix.partition import PARTITIONERS, partition
from tests.unit.data.matrix.partitions import check, graph_of

pytestmark = pytest.mark.usefixtures("user_cache")


def test_a_second_call_reads_the_file(communities, how, tmp_path, monkeypatch):
    first = partition(communities, 5, how=how, cache=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == len(list(tmp_path.iterdir())) == 1
    for name in PARTITIONERS:
        monkeypatch.setitem(PARTITIONERS, name, None)
    assert torch.equal(partition(communities, 5, how=how, cache=tmp_path), first)


def test_a_hit_does_not_call_metis(communities, tmp_path, monkeypatch):
    import pymetis

    first = partition(communities, 5, cache=tmp_path)
    monkeypatch.setattr(pymetis, "part_graph", None)
    assert torch.equal(partition(communities, 5, cache=tmp_path), first)


def test_what_the_file_is_named_by(tmp_path):
    def names(graph, num_parts=2, **settings):
        before = set(tmp_path.iterdir())
        partition(graph, num_parts, cache=tmp_path, **settings)
        return set(tmp_path.iterdir()) - before

    path = [(0, 1), (1, 2), (2, 3)]
    assert names(graph_of(path, 4))
    assert not names(graph_of(path, 4, x=1.0)), "features do not matter"
    assert names(graph_of([(0, 1), (1, 2), (0, 3)], 4))
    assert names(graph_of(path, 5))
    assert names(graph_of(path, 4), num_parts=3)
    assert names(graph_of(path, 4), seed=1)
    assert names(graph_of(path, 4), how="random")


def int32(*values):
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"nonsense",
        b"\x93NUMPY\x01\x00",
        b"PK\x03\x04 no zip either",
        int32(0, 1, 0),
        int32(0, 1, 0, 2),
        int32(0, -1, 0, 1),
        int32(0, 0, 0, 0),
        np.array([0, 1, 0, 1]),
        np.array([0.0, 1.0, 0.0, 1.0]),
        np.array([0, 1, 0, None], dtype=object),
        np.zeros((4, 1), dtype=np.int32),
        np.int32(1),
    ],
    ids=str,
)
def test_a_damaged_file_is_replaced(damage, tmp_path, caplog):
    graph = graph_of([(0, 1), (2, 3)], 4)
    want = partition(graph, 2, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        np.save(path, damage, allow_pickle=True)
    with caplog.at_level(logging.INFO, "graphfm"):
        assert torch.equal(partition(graph, 2, cache=tmp_path), want)
    assert "cannot be used" in caplog.text
    assert path.read_bytes() == whole


def test_a_file_cut_short_is_replaced(tmp_path):
    graph = graph_of([(0, 1), (2, 3)], 4)
    want = partition(graph, 2, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert torch.equal(partition(graph, 2, cache=tmp_path), want)
        assert path.read_bytes() == whole


def test_without_a_place_to_write_there_is_a_partition(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with caplog.at_level(logging.INFO, "graphfm"):
        check(partition(graph_of([(0, 1)], 3), 2, cache=blocked / "folder"), 3, 2)
    assert "the partition cannot be cached" in caplog.text
    assert all(record.levelno == logging.INFO for record in caplog.records)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_no_error(tmp_path):
    tmp_path.chmod(0o500)
    check(partition(graph_of([(0, 1)], 3), 2, cache=tmp_path), 3, 2)
    tmp_path.chmod(0o700)


def test_the_default_folder(tmp_path, monkeypatch):
    graph = graph_of([(0, 1)], 3)
    partition(graph, 2)
    assert len(list((tmp_path / "user" / "partitions").iterdir())) == 1
    monkeypatch.delenv("GRAPHFM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    partition(graph, 2)
    assert len(list((tmp_path / "xdg" / "graphfm" / "partitions").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    partition(graph, 2)
    assert len(list((tmp_path / "home/.cache/graphfm/partitions").iterdir())) == 1


def test_without_pymetis_a_cached_partition_and_random_parts_still_work(tmp_path, monkeypatch):
    graph = graph_of([(0, 1), (1, 2)], 4)
    first = partition(graph, 2, cache=tmp_path)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert torch.equal(partition(graph, 2, cache=tmp_path), first)
    check(partition(graph, 2, how="random", cache=tmp_path), 4, 2)
