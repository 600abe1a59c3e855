"""graphfm train --resume continues a run, or says why it cannot."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.unit.cli.commands import TRAIN, graphfm, refused

pytestmark = pytest.mark.usefixtures("here")


def test_a_run_that_continues_is_not_explained(here):
    """It would be trained: the plan is that of a new training."""
    refused(graphfm("train", "--resume", "run", "--explain"), "leave out --resume")


def test_a_file_in_place_of_a_run_is_refused(run):
    for name in ("config.json", "model.safetensors"):
        ended = graphfm("train", "--resume", run / name)
        refused(ended, f"{name} is a file; expected the folder of a run; give {run}")
    Path("other").write_text("")
    refused(graphfm("train", "--resume", "other"), "other is a file; expected the folder of a run")


@pytest.mark.parametrize("content", ["", '{"run": {"data', "[]", "{}", "\\x00"])
def test_a_damaged_config_says_what_to_do(run, content):
    (run / "config.json").write_text(content)
    ended = graphfm("train", "--resume", run)
    refused(ended, "config.json is .*; restore it from a copy, or start a new run")


def test_a_graph_that_is_gone_is_asked_for(run):
    path = run / "config.json"
    config = json.loads(path.read_text())
    config["graph"]["path"] = "/nowhere/graph.npz"
    path.write_text(json.dumps(config))
    (run / "result.json").unlink()
    ended = graphfm("train", "--resume", run)
    refused(ended, "the run is missing: /nowhere/graph.npz; restore it, or continue in Python")


def test_a_run_that_may_not_be_read_says_so(run, monkeypatch):
    """As its owner has it; root may read anything."""

    def forbid(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("graphfm.runs.reader.read_json", forbid)
    ended = graphfm("train", "--resume", run)
    refused(ended, "config.json cannot be read; check its permissions")


def test_a_finished_run_is_reported_again(run):
    again = graphfm("train", "--resume", run, "--json")
    assert again.code == 0
    assert again.json["val"] == json.loads((run / "result.json").read_text())["val"]
    assert graphfm("train", "--resume", run).out.startswith("test 0.")


def test_a_run_goes_on_with_its_own_settings(run):
    (run / "result.json").unlink()
    shutil.rmtree(run / "checkpoints")
    before = (run / "model.safetensors").read_bytes()
    ended = graphfm("train", "--resume", run, "--json")
    assert (ended.code, ended.json["epochs"]) == (0, 2)
    assert (run / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("--lr", 0.1), "--lr"), (("--out", "x"), "--out"), (("--no-batch-norm",), "--batch-norm"),
        (("--device", "cpu"), "--device"), (("--recipe", "x"), "--recipe"),
    ],
)  # fmt: skip
def test_no_other_settings_are_taken(run, given, named):
    refused(graphfm("train", "--resume", run, *given), f"settings of the run; leave out {named}")


def test_a_folder_with_a_run_is_not_written_over_but_may_go_on(run):
    refused(
        graphfm(*TRAIN, "--out", run),
        "to continue its run: graphfm train --resume .*run, or in",
    )


def test_a_folder_that_is_no_run_cannot_go_on(here):
    refused(
        graphfm("train", "--resume", "nowhere"), "nowhere is not a run: there is no such folder"
    )
