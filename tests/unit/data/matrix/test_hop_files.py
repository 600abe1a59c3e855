"""Hops that were interrupted, or are wanted once more."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfm import Graph
from graphfm.data.matrix import hops as module
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.hop_files import HopFiles
from graphfm.data.matrix.hops import hops
from tests.unit.data.matrix.hop_folders import compute, contents


class StopError(Exception):
    pass


def stop_after(monkeypatch, num_chunks):
    """Fail in the middle of the chunk after so many: rows are in the file, the JSON is not."""
    append, seen = HopFiles.append, []

    def stopping(self, hop, rows):
        seen.append(hop)
        if len(seen) > num_chunks:
            with self.path(hop).open("ab") as stream:
                stream.write(b"half a chunk")
            raise StopError
        append(self, hop, rows)

    monkeypatch.setattr(HopFiles, "append", stopping)
    return lambda: monkeypatch.setattr(HopFiles, "append", append)


def test_a_second_call_computes_nothing(adjacency, tmp_path, computed):
    first = compute(adjacency, 2, tmp_path)
    del computed[:]
    second = compute(adjacency, 2, tmp_path)
    assert computed == []
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)


def test_files_are_plain_npy(adjacency, tmp_path):
    found = compute(adjacency, 2, tmp_path)
    for hop in (1, 2):
        (path,) = tmp_path.glob(f"*.{hop}.npy")
        assert np.array_equal(np.load(path, allow_pickle=False), found[hop].numpy())


def test_writing_to_the_rows_does_not_change_the_file(adjacency, tmp_path):
    compute(adjacency, 1, tmp_path)
    want = contents(tmp_path)
    compute(adjacency, 1, tmp_path)[1].fill_(7.0)
    assert contents(tmp_path) == want


@pytest.mark.parametrize("num_chunks", [0, 1, 4, 8, 9, 10, 17])
def test_an_interrupted_computation_goes_on(
    adjacency, tmp_path, monkeypatch, computed, num_chunks, caplog
):
    want = compute(adjacency, 2, tmp_path / "whole")
    go_on = stop_after(monkeypatch, num_chunks)
    with pytest.raises(StopError):
        compute(adjacency, 2, tmp_path / "broken")
    go_on()
    del computed[:]
    with caplog.at_level(logging.INFO, "graphfm"):
        found = compute(adjacency, 2, tmp_path / "broken")
    assert len(computed) == 18 - num_chunks
    assert ("continues at row" in caplog.text) == (num_chunks % 9 > 0)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    for one, other in zip(found, want, strict=True):
        assert torch.equal(one, other)


def test_other_chunks_go_on_where_the_first_ones_ended(adjacency, tmp_path, monkeypatch, computed):
    compute(adjacency, 2, tmp_path / "whole")
    go_on = stop_after(monkeypatch, 11)
    with pytest.raises(StopError):
        compute(adjacency, 2, tmp_path / "broken")
    go_on()
    del computed[:]
    compute(adjacency, 2, tmp_path / "broken", chunk=20)
    assert computed == [20, 20, 6]
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


KILLED = """
import os, signal, sys
from pathlib import Path
from graphfm import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.hop_files import HopFiles
from graphfm.data.matrix.hops import hops

append, seen = HopFiles.append, []

def killing(self, hop, rows):
    append(self, hop, rows)
    seen.append(hop)
    if len(seen) == 12:
        os.kill(os.getpid(), signal.SIGKILL)

HopFiles.append = killing
graph = Graph.from_npz(sys.argv[1])
hops(Adjacency.symmetric(graph), 2, most_in_memory=0, cache=Path(sys.argv[2]), chunk_nodes=7)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_killed_process_loses_one_chunk_at_most(make_graph, tmp_path, computed):
    make_graph(weighted=True).save(tmp_path / "graph.npz")
    adjacency = Adjacency.symmetric(Graph.from_npz(tmp_path / "graph.npz"))
    compute(adjacency, 2, tmp_path / "whole")
    arguments = [sys.executable, "-c", KILLED, tmp_path / "graph.npz", tmp_path / "killed"]
    source = str(Path(module.__file__).parents[3])
    ended = subprocess.run(arguments, env=os.environ | {"PYTHONPATH": source}, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    del computed[:]
    compute(adjacency, 2, tmp_path / "killed")
    assert len(computed) == 6
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_more_hops_continue_from_those_there_are(adjacency, tmp_path, computed):
    want = hops(adjacency, 3)
    compute(adjacency, 1, tmp_path)
    del computed[:]
    found = compute(adjacency, 3, tmp_path)
    assert len(computed) == 18
    assert len(compute(adjacency, 2, tmp_path)) == 3
    assert len(computed) == 18
    for one, other in zip(found, want, strict=True):
        assert torch.equal(one, other)


def test_what_files_are_named_by(make_graph, tmp_path):
    def files(adjacency):
        before = set(tmp_path.glob("*.npy"))
        compute(adjacency, 1, tmp_path)
        return set(tmp_path.glob("*.npy")) - before

    graph = make_graph()
    other = Graph.from_edges(graph.edge_index, graph.x + 1)
    assert files(Adjacency.symmetric(graph))
    assert not files(Adjacency.symmetric(make_graph()))
    assert files(Adjacency.symmetric_without_loops(graph))
    assert files(Adjacency.mean(graph))
    assert files(Adjacency.symmetric(other))


def test_finished_hops_are_read_where_nothing_can_be_written(adjacency, tmp_path, monkeypatch):
    compute(adjacency, 2, tmp_path)
    monkeypatch.setattr(HopFiles, "locked", None)
    monkeypatch.setattr(HopFiles, "append", None)
    assert len(compute(adjacency, 2, tmp_path)) == 3


def test_who_comes_second_waits_for_the_first(adjacency, tmp_path, caplog, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    files = HopFiles(tmp_path, "key", (2, 2))
    with files.locked():
        real, waited = fcntl.flock, []

        def flock(stream, how):
            if how == fcntl.LOCK_EX:  # would wait for this very test
                waited.append(how)
            else:
                real(stream, how)

        monkeypatch.setattr(fcntl, "flock", flock)
        with caplog.at_level(logging.INFO, "graphfm"), files.locked():
            assert waited
    assert "waiting for it" in caplog.text
