"""Many edges between many ids: counts and a checksum are right, within the memory that is given."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphfm import load
from tests.unit.data.sources.tables.many import command, edges, write_tables

PEAK = """
import sys
sys.argv[1:] = {arguments}
from graphfm.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


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
    write_tables(tmp_path, num_nodes, num_edges)
    out = tmp_path / "graph"
    arguments = command(tmp_path, out, memory)
    program = PEAK.format(arguments=arguments)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    report, peak = ended.stdout.splitlines()
    assert int(peak) * 1024 < most
    found = json.loads(report)
    assert (found["edge_rows"], found["edges"], found["nodes"]) == (num_edges, num_edges, num_nodes)
    graph = load(out)
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
