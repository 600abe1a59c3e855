"""Many edges between many ids: counts and a checksum are right, within the memory that is given."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from graphfm import load

AT_ONCE = 1 << 21
PRIME = (1 << 31) - 1
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


def ends(first: int, last: int, num_nodes: int):
    """Sources and targets of some edges; both depend on the whole number of the edge."""
    number = np.arange(first, last, dtype=np.int64)
    return number * 48271 % PRIME % num_nodes, number * 16807 % PRIME % num_nodes


def write(folder: Path, num_nodes: int, num_edges: int) -> None:
    """Ids are texts; the table of nodes has them backwards."""
    db = duckdb.connect(str(folder / "made.db"), config={"memory_limit": "1GB", "threads": 2})
    text = "'user-' || lpad(({})::VARCHAR, 14, '0')"
    last = text.format(f"{num_nodes - 1} - i")
    db.execute(
        f"COPY (SELECT {last} AS id, (i % 3)::VARCHAR AS label FROM range({num_nodes}) t(i)) "
        f"TO '{folder}/nodes.parquet'"
    )
    source, target = (
        text.format(f"i * {factor} % {PRIME} % {num_nodes}") for factor in (48271, 16807)
    )
    half = num_edges // 2
    for part, (first, end) in enumerate([(0, half), (half, num_edges)]):
        db.execute(
            f"COPY (SELECT {source} AS a, {target} AS b FROM range({first}, {end}) t(i)) "
            f"TO '{folder}/edges{part}.parquet'"
        )
    db.close()
    (folder / "made.db").unlink()


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
    write(tmp_path, num_nodes, num_edges)
    out = tmp_path / "graph"
    arguments = [
        "import", "--edges", f"{tmp_path}/edges*.parquet", "--source", "a", "--target", "b",
        "--nodes", f"{tmp_path}/nodes.parquet", "--label", "label", "--shares", "0.5,0.2",
        "--feature", "label=one-hot", "--out", str(out), "--memory", memory, "--json", "-q",
    ]  # fmt: skip
    program = PEAK.format(arguments=arguments)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    report, peak = ended.stdout.splitlines()
    assert int(peak) * 1024 < most
    found = json.loads(report)
    assert (found["edge_rows"], found["edges"], found["nodes"]) == (num_edges, num_edges, num_nodes)
    graph = load(out)
    degree, expected, loops = np.zeros(num_nodes, np.int64), 0, 0
    for first in range(0, num_edges, AT_ONCE):
        pair = ends(first, min(first + AT_ONCE, num_edges), num_nodes)
        sources, targets = (num_nodes - 1 - end for end in pair)
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
