"""Runs that version 0.1.0 wrote, before own methods and state per part, are read and continued."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from graphfm import load, load_model, resume, train

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
