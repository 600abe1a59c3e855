"""Every example runs as a user would run it, and stays short enough to read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(arguments, folder, *path):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *map(str, path)]),
    }
    ended = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, env=environment, text=True,
        capture_output=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_and_runs(path, tmp_path):
    assert len(path.read_text().splitlines()) < 80
    assert "test" in run([path], tmp_path)
    assert list(tmp_path.iterdir()) == []  # nothing is written unless it is asked for


def test_there_is_an_example_of_each_kind():
    assert {path.name for path in EXAMPLES} >= {
        "train.py", "your_own_method.py", "your_own_backbone.py",
    }  # fmt: skip


def test_momentum_beats_sampling_in_the_first_example(tmp_path):
    """One neighbour with momentum lies between one without and the full batch."""
    lines = run([ROOT / "examples" / "train.py"], tmp_path).splitlines()
    score = {line.split()[0]: float(line.split()[-1]) for line in lines if "accuracy" in line}
    assert score["graphsage"] < score["graphfm-ib"]
