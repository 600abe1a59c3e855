"""Tables of many edges between texts, whose graph can be computed without reading them."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np

AT_ONCE = 1 << 21
PRIME = (1 << 31) - 1
FACTORS = 48271, 16807  # of sources and targets: both depend on the whole number of an edge


def write_tables(folder: Path, num_nodes: int, num_edges: int) -> None:
    """Ids are texts; the table of nodes has them backwards."""
    db = duckdb.connect(str(folder / "made.db"), config={"memory_limit": "1GB", "threads": 2})
    text = "'user-' || lpad(({})::VARCHAR, 14, '0')"
    last = text.format(f"{num_nodes - 1} - i")
    columns = "(i % 3)::VARCHAR AS label, (i * 7919 % 1000)::DOUBLE / 10 AS age"
    db.execute(
        f"COPY (SELECT {last} AS id, {columns} FROM range({num_nodes}) t(i)) "
        f"TO '{folder}/nodes.parquet'"
    )
    source, target = (text.format(f"i * {factor} % {PRIME} % {num_nodes}") for factor in FACTORS)
    half = num_edges // 2
    for part, (first, end) in enumerate([(0, half), (half, num_edges)]):
        db.execute(
            f"COPY (SELECT {source} AS a, {target} AS b FROM range({first}, {end}) t(i)) "
            f"TO '{folder}/edges{part}.parquet'"
        )
    db.close()
    (folder / "made.db").unlink()


def command(tables: Path, out: Path, memory: str) -> list[str]:
    """The arguments of `graphfm` that import these tables."""
    return [
        "import", "--edges", f"{tables}/edges*.parquet", "--source", "a", "--target", "b",
        "--nodes", f"{tables}/nodes.parquet", "--label", "label", "--shares", "0.5,0.2",
        "--feature", "label=one-hot", "--feature", "age=standard", "--out", str(out),
        "--memory", memory, "--json", "-q",
    ]  # fmt: skip


def edges(num_nodes: int, num_edges: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the sources and targets that the graph must have, in pieces, by arithmetic."""
    for first in range(0, num_edges, AT_ONCE):
        number = np.arange(first, min(first + AT_ONCE, num_edges), dtype=np.int64)
        sources, targets = (num_nodes - 1 - number * f % PRIME % num_nodes for f in FACTORS)
        yield sources, targets
