"""Nothing grows and nothing is left, however often runs are stopped and taken up again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.soak import GROWTH


def run(minutes: float) -> dict:
    """In a process of its own, whose memory is nobody else's."""
    command = [sys.executable, "-m", "tests.reliability.soak", "--minutes", str(minutes)]
    command += ["--rounds", "2"]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=root, env=os.environ)
    assert ended.stdout, ended.stderr
    report = json.loads(ended.stdout)
    assert report["problems"] == []
    assert report["open_files"][1] <= report["open_files"][0]
    assert ended.returncode == 0, report
    return report


def test_a_short_soak():
    assert run(minutes=0.02)["rounds"] >= 2


@pytest.mark.extended
def test_a_soak_of_half_an_hour():
    report = run(minutes=30)
    assert report["rounds"] >= 100
    assert report["kills"] >= 20
    assert report["growth"] <= GROWTH
