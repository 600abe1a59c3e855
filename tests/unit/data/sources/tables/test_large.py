"""Many edges between many ids: counts and a checksum are right, within the memory that is given."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfm import load
from graphfm.runs.memory_plan import foresee
from graphfm.runs.run import Run
from tests.unit.data.sources.tables.many import edges, script

TINY = "synthetic:small:0.01"


def checksum(sources, targets) -> int:
    return int(((sources * 31 + targets * 17) % 1009 * (sources % 7 + 1)).sum())


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak is read on Linux")
@pytest.mark.parametrize(
    ("num_edges", "num_nodes", "memory", "most"),
    [
        (5_000_000, 500_000, "800MB", 1 << 30),
        pytest.param(
            100_000_000, 20_000_000, "2GB", 5 << 29, marks=pytest.mark.extended, id="100 million"
        ),
    ],
)
def test_counts_and_memory(tmp_path, num_edges, num_nodes, memory, most):
    script.write_tables(tmp_path, num_nodes, num_edges)
    out = tmp_path / "graph"
    ended = script.measure(script.COMMAND, *script.import_command(tmp_path, out, memory))
    assert ended.resident < most
    found = json.loads(ended.output)
    assert (found["edge_rows"], found["edges"], found["nodes"]) == (num_edges, num_edges, num_nodes)
    compare_with_arithmetic(out, found)
    needs_what_is_planned(out)


def compare_with_arithmetic(out: Path, found: dict) -> None:
    """Every degree, a checksum of all edges, ids and labels, computed without the tables."""
    graph = load(out)
    num_nodes, num_edges = graph.num_nodes, graph.num_edges
    degree, expected, loops = np.zeros(num_nodes, np.int64), 0, 0
    for sources, targets in edges(num_nodes, num_edges):
        degree += np.bincount(targets, minlength=num_nodes)
        expected += checksum(sources, targets)
        loops += int((sources == targets).sum())
    assert np.array_equal(degree, graph.degree.numpy())
    assert found["self_loops"] == loops
    offsets, got = graph.indptr.numpy(), 0
    for first in range(0, num_nodes, 1 << 18):
        last = min(first + (1 << 18), num_nodes)
        sources = graph.indices[offsets[first] : offsets[last]].numpy().astype(np.int64)
        targets = np.repeat(np.arange(first, last), np.diff(offsets[first : last + 1]))
        got += checksum(sources, targets)
    assert got == expected
    assert graph.node_names[0] == f"user-{num_nodes - 1:014d}"
    assert graph.y[:3].tolist() == [0, 1, 2]


def needs_what_is_planned(out: Path) -> None:
    """Up to its first step a training takes at most 1.5 times the memory of its plan.

    What it takes on a graph of a few nodes is that of Python and torch.
    """
    itself, taken = (
        script.measure(
            script.FIRST_STEP, "train", "-q", "--out", str(out.parent / f"run{number}"),
            *script.as_options(script.train_settings(graph, hidden=32)),
        ).resident
        for number, graph in enumerate((TINY, out))
    )  # fmt: skip
    plan = foresee(Run.make(**script.train_settings(out, hidden=32)), torch.device("cpu"))
    planned = script.until_first_step(plan)
    assert 0.5 * planned < taken - itself < 1.5 * planned
