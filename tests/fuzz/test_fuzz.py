"""The short form of the fuzz loop, and every input that once told something new."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.loop import BYTES, SECONDS, Fuzz

CORPUS = Path(__file__).with_name("corpus.jsonl")


def run(inputs: int, seed: int, *more: str) -> dict:
    """In a process of its own: the memory that is measured is that of the readers."""
    command = [sys.executable, "-m", "tests.fuzz.loop", "--inputs", str(inputs)]
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [*command, "--seed", str(seed), *more],
        capture_output=True,
        text=True,
        cwd=root,
        env=os.environ,
    )
    assert ended.stdout, ended.stderr
    report = json.loads(ended.stdout)
    assert report["fallen"] == []
    return report


def check(report: dict, inputs: int) -> None:
    assert report["inputs"] == inputs
    assert report["refused"] > inputs / 2  # most are bad, and none is believed by mistake
    assert report["slowest"] < SECONDS
    assert report["memory"] < BYTES


def test_two_thousand_bad_inputs():
    check(run(2_000, seed=1), 2_000)


@pytest.mark.extended
def test_twenty_thousand_bad_inputs():
    check(run(20_000, seed=2), 20_000)


@pytest.mark.extended
@pytest.mark.parametrize("reader", ["tables", "parquet"])
def test_two_thousand_hostile_tables(reader):
    check(run(2_000, 3, "--only", reader), 2_000)


def test_the_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fuzz = Fuzz(tmp_path, seed=0)
    entries = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    assert {entry["reader"] for entry in entries} >= {"npz", "run", "archive", "signed checkpoint"}
    for entry in entries:
        content = base64.b64decode(entry["content"])
        problem = fuzz.again(entry["reader"], entry["file"], content)
        assert problem == "", entry
