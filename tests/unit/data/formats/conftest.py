"""Where a graph file is written."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "graph.npz"
