"""A folder to work in, and a run that several tests read."""

import shutil
from pathlib import Path

import pytest

from tests.unit.cli.commands import TRAIN, Ended, graphfm


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> tuple[Path, Ended]:
    """A run, and what the command that made it printed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    return out, graphfm(*TRAIN, "--out", out, "--json")


@pytest.fixture
def run(trained, here) -> Path:
    """A copy of the run that a test may damage."""
    return shutil.copytree(trained[0], here / "run")
