"""Runs that version 0.1.0 wrote, before own methods and state per part, are read and continued."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from graphfm import load, load_model, resume, train
from graphfm.runs.run import Run

OLD = Path(__file__).parent / "old_runs"


@pytest.fixture
def old(tmp_path):
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


def weights(model):
    return dict(model.backbone.state_dict())


def test_a_stopped_run_continues_and_ends_as_if_it_had_not_been_stopped(old):
    """The checkpoint has no numbers of an estimator, which that version did not know."""
    state = json.loads(next((old / "stopped/checkpoints").glob("*.json")).read_text())["state"]
    assert "estimator" not in state["training"]
    resumed = resume(old / "stopped")
    whole = train(
        "synthetic:small:0.02", method="graphfm-ib", device="cpu", epochs=4, hidden=4,
        batch_size=8, layers=3, seed=1, beta=0.7, whole_gradient=False, correct_lag=False,
        drop_average=False, dropout=0.5, lr=0.01, schedule="constant",
    )  # fmt: skip
    torch.testing.assert_close(weights(resumed.model), weights(whole.model))
    finished = json.loads((old / "finished/result.json").read_text())
    assert resumed.score.test == pytest.approx(finished["test"])


def test_a_finished_run_is_read_and_predicts(old):
    run = resume(old / "finished")
    assert run.score.epochs == 4
    graph = load("synthetic:small:0.02")
    scores = load_model(old / "finished").evaluate(graph)
    assert scores["test"] == pytest.approx(run.score.test)


def losses(path):
    lines = (path / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def test_a_stopped_run_whose_fanouts_began_with_the_input_layer_ends_as_it_would_have(old):
    """Version 0.1.0 wrote 1,2,4 for what is 4,2,1 today; both folders are its own."""
    stopped, finished = old / "stopped_with_lists", old / "finished_with_lists"
    settings = json.loads((stopped / "config.json").read_text())["run"]["method_settings"]
    assert settings["fanout"] == [1, 2, 4]
    before = len(losses(stopped))
    resumed = resume(stopped)
    assert resumed.run.method_settings["fanout"] == (4, 2, 1)
    torch.testing.assert_close(weights(resumed.model), weights(load_model(finished)))
    assert losses(stopped) == pytest.approx(losses(finished), rel=1e-5)
    assert len(losses(stopped)) == 4 > before


def test_a_run_that_is_resumed_twice_is_turned_round_once(old):
    for _ in range(2):
        run = resume(old / "finished_with_lists").run
        assert run.method_settings["fanout"] == (4, 2, 1)
    assert Run.from_json(run.to_json()).method_settings["fanout"] == (4, 2, 1)
