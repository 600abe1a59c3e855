"""An empty folder of datasets, and no network."""

import pytest

from graphfm.data.sources import fetch as fetching
from graphfm.data.sources.download import Unreachable


@pytest.fixture
def root(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def offline(monkeypatch):
    """Whoever wants to download is told that there is no network."""
    wanted = []

    def refuse(file, path, tell):
        wanted.append(path)
        raise Unreachable(f"{file.url} cannot be reached (no network)")

    monkeypatch.setattr(fetching, "download", refuse)
    return wanted
