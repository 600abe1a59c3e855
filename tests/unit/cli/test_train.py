"""graphfm train: what it prints where, and what it leaves behind."""

import json
import re
import subprocess
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch

from graphfm.backbones import BACKBONES
from graphfm.cli import entry
from tests.unit.cli.commands import (
    FILES,
    KEPT,
    SMALL,
    TRAIN,
    Ended,
    command,
    graphfm,
    other_graph,
    refused,
    tree,
)

PROMISED = {
    "dataset", "method", "backbone", "layers", "test", "val", "best_epoch", "epochs",
    "seconds_per_epoch", "peak_bytes", "out",
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("here")


def test_train_prints_one_line_of_json_with_all_that_is_promised(trained):
    out, ended = trained
    assert ended.code == 0
    record = ended.json
    assert record.keys() >= PROMISED
    assert (record["dataset"], record["method"], record["backbone"]) == (SMALL, "full", "sage")
    assert (record["layers"], record["epochs"], record["out"]) == (2, 2, str(out))
    assert 0 <= record["val"] <= 1
    assert 0 <= record["test"] <= 1
    assert record["best_epoch"] in (1, 2)
    assert record["seconds_per_epoch"] > 0
    assert record["peak_bytes"] > 0


def test_train_says_on_stderr_what_it_trains_on(trained):
    memory, what, first, last = trained[1].err.splitlines()
    assert memory.startswith("memory on cpu, about: graph ")
    assert what.startswith(f"{SMALL}: 200 nodes, 4,000 edges, 64 features, 10 classes;")
    line = r"epoch {} of 2: loss [\d.]+, validation [\d.]+ \(best [\d.]+\)"
    assert re.fullmatch(line.format(1) + r", at most \d+ s left", first)
    assert re.fullmatch(line.format(2), last)


def test_a_run_folder_holds_five_files_that_can_be_read(trained):
    out, ended = trained
    assert tree(out) == FILES | KEPT
    config = json.loads((out / "config.json").read_text())
    assert config["run"]["dataset"] == SMALL
    assert config["versions"]["torch"] == torch.__version__
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in metrics] == [1, 2]
    assert max(line["val"] for line in metrics) == ended.json["val"]
    result = json.loads((out / "result.json").read_text())
    assert result.items() <= ended.json.items()
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_without_out_and_json_a_new_folder_is_named_in_one_line_for_people(here):
    first, second = graphfm(*TRAIN), graphfm(*TRAIN)
    assert first.code == second.code == 0
    assert first.out.startswith("test 0.")
    assert first.out.endswith("run in runs/synthetic-small-0.02-full-sage\n")
    assert second.out.endswith("run in runs/synthetic-small-0.02-full-sage-2\n")
    assert tree(here / "runs" / "synthetic-small-0.02-full-sage-2") == FILES | KEPT


def test_the_same_seed_gives_the_same_numbers(trained):
    again = graphfm(*TRAIN, "--out", "again", "--json").json
    record = trained[1].json
    assert [again[key] for key in ("val", "test")] == [record[key] for key in ("val", "test")]
    metrics = [(path / "metrics.jsonl").read_text() for path in (trained[0], Path("again"))]
    losses = [[json.loads(line)["loss"] for line in text.splitlines()] for text in metrics]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_backbone_trains_and_is_read_back(backbone):
    out = Path("run")
    record = graphfm(*TRAIN, "--backbone", backbone, "--layers", 3, "--out", out, "--json").json
    scores = graphfm("evaluate", out, "--device", "cpu", "--json").json
    assert (record["backbone"], record["val"]) == (backbone, scores["val"])


def test_options_reach_the_run():
    options = ("--layers", 3, "--hidden", 8, "--aggregators", "std,min", "--scalers", "attenuation",
               "--dropout", 0.25, "--batch-norm", "--residual", "--dropout-input", "--lr", 0.02,
               "--seed", 7, "--clip", 1, "--schedule", "cosine", "--eval-every", 2,
               "--weight-decay", 1e-4, "--patience", 5)  # fmt: skip
    assert graphfm(*TRAIN, "--backbone", "pna", *options, "--out", "run").code == 0
    run = json.loads(Path("run/config.json").read_text())["run"]
    assert run["backbone_settings"] == {
        "layers": 3, "hidden": 8, "dropout": 0.25, "dropout_input": True, "batch_norm": True,
        "residual": True, "aggregators": ["std", "min"], "scalers": ["attenuation"],
        "transform": False, "separate": False, "jump": False,
    }  # fmt: skip
    expected = {
        "epochs": 2, "lr": 0.02, "weight_decay": 1e-4, "schedule": "cosine", "clip": 1.0,
        "patience": 5, "eval_every": 2, "seed": 7,
    }  # fmt: skip
    assert run["training"].items() >= expected.items()


def test_an_empty_folder_is_as_good_as_a_new_one(here):
    (here / "empty").mkdir()
    assert graphfm(*TRAIN, "--out", "empty").code == 0
    assert tree(here / "empty") == FILES | KEPT


def test_a_graph_without_test_nodes_has_no_test_score(here):
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 0, 0]}
    other_graph(here / "g.npz", y=[0, 1, 0, 1, -1], **masks)
    ended = graphfm("train", "--dataset", "g.npz", "--epochs", 1, "--out", "run", "--json")
    assert ended.json["test"] is None


# What is said on the way


def test_quiet_prints_the_result_alone():
    ended = graphfm(*TRAIN, "--out", "run", "-q", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json["epochs"] == 2
    assert graphfm("evaluate", "run", "-q").err == ""
    refused(graphfm(*TRAIN, "--out", "run", "-q"), "run is not empty")


def test_verbose_adds_debug_messages():
    plain, more = (
        subprocess.run(command(*TRAIN, *flags), capture_output=True, text=True)
        for flags in ([], ["-v"])
    )
    assert "settings: Run(" not in plain.stderr
    assert "settings: Run(" in more.stderr
    refused(graphfm(*TRAIN, "-q", "-v"), "--quiet and --verbose were both given")


@pytest.mark.parametrize("arguments", [["methods"], ["datasets"], ["datasets", "check", "flickr"]])
def test_every_command_takes_quiet_and_verbose(arguments):
    for flag in ("-q", "--verbose"):
        assert "No such option" not in graphfm(*arguments, flag).err


def test_the_plan_is_explained_and_nothing_is_trained(here):
    ended = graphfm(*TRAIN, "--explain")
    assert ended.code == 0
    assert ended.out.splitlines()[0].startswith("full on sage with 2 layers")
    assert (ended.out + ended.err).count("memory on cpu, about:") == 1
    assert graphfm(*TRAIN, "--explain", "--json").json[0] == ended.out.splitlines()[0]
    assert tree(here) == set()


# Processes of their own


def test_the_program_is_installed_under_its_name():
    (script,) = entry_points(group="console_scripts", name="graphfm")
    assert script.load() is entry


def test_a_process_prints_json_only_and_a_second_one_reads_the_run(here):
    train = subprocess.run(
        command(*TRAIN, "--out", "run", "--json"), capture_output=True, text=True
    )
    assert train.returncode == 0
    record = json.loads(train.stdout)
    evaluate = subprocess.run(command("evaluate", "run", "--json"), capture_output=True, text=True)
    assert (evaluate.returncode, evaluate.stderr) == (0, "")
    scores = json.loads(evaluate.stdout)
    assert [scores[key] for key in ("val", "test")] == [record[key] for key in ("val", "test")]


def test_a_process_given_a_damaged_file_shows_no_traceback(here):
    (here / "g.npz").write_bytes(b"PK\x03\x04 and no more")
    ended = subprocess.run(command("train", "--dataset", "g.npz"), capture_output=True, text=True)
    refused(Ended(ended.returncode, ended.stdout, ended.stderr), "g.npz: damaged")
    assert tree(here) == {"g.npz"}
