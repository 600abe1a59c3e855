"""Tables of many edges between texts, whose graph can be computed without reading them."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

PLACE = Path(__file__).parents[5] / "benchmarks" / "own_graph.py"
AT_ONCE = 1 << 21


def _load():
    spec = importlib.util.spec_from_file_location("own_graph_benchmark", PLACE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


script = _load()  # it writes the tables, and measures commands


def edges(num_nodes: int, num_edges: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the sources and targets that the graph must have, in pieces, by arithmetic."""
    for first in range(0, num_edges, AT_ONCE):
        number = np.arange(first, min(first + AT_ONCE, num_edges), dtype=np.int64)
        sources, targets = (
            num_nodes - 1 - number * factor % script.PRIME % num_nodes for factor in script.FACTORS
        )
        yield sources, targets
