"""Ctrl-C ends a command cleanly, and a training says how to continue."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from graphfm.runs.folder import RunFolder
from tests.unit.cli.commands import KEPT, SMALL, TRAIN, command, graphfm, tree

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [(TRAIN, "train.load"), (("info", SMALL), "info.summarize")],
)
def test_ctrl_c_before_there_is_a_run_ends_cleanly(here, monkeypatch, arguments, place):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"graphfm.cli.{place}", interrupt)
    ended = graphfm(*arguments)
    assert (ended.code, ended.out) == (130, "")
    said = [line for line in ended.err.splitlines() if not line.startswith("memory on cpu")]
    assert said == ["graphfm: interrupted"]
    assert tree(here) == set()


def test_ctrl_c_in_mid_training_keeps_the_best_model(here):
    arguments = ("train", "--dataset", SMALL, "--epochs", 10**6, "--patience", 0, "--out", "run")
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        give_up = time.monotonic() + 60
        while not (here / "run" / "model.safetensors").exists() and time.monotonic() < give_up:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    assert [line for line in err.splitlines() if line.startswith("graphfm: ")] == [
        "graphfm: stopping at the next step; press Ctrl-C again to stop immediately (the last "
        "checkpoint is kept)",
        "graphfm: interrupted; to continue: graphfm train --resume run; its best model so far: "
        "graphfm evaluate run",
    ]
    assert tree(here / "run") == {"config.json", "metrics.jsonl", "model.safetensors"} | KEPT
    lines = Path("run/metrics.jsonl").read_text().splitlines()
    values = [json.loads(line)["val"] for line in lines]
    # the last line may be written and its weights not yet
    best = {max(values), max(values[:-1], default=max(values))}
    assert graphfm("evaluate", "run", "--json").json["val"] in best


def test_ctrl_c_twice_ends_at_once_and_says_how_to_go_on(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "on_epoch", interrupt)
    ended = graphfm(*TRAIN, "--out", "run")
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.splitlines()[2:] == [
        "graphfm: interrupted; to continue: graphfm train --resume run"
    ]
