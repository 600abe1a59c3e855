"""The command line: what it prints where, what it leaves behind, and how it refuses."""

import csv
import errno
import inspect
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfm import Graph, load
from graphfm.backbones import BACKBONES
from graphfm.backbones.base import Settings
from graphfm.backbones.gcnii import GCNIISettings
from graphfm.backbones.pna import PNASettings
from graphfm.cli import entry, main
from graphfm.data.datasets import DATASETS
from graphfm.methods import METHODS
from graphfm.options import options_in
from graphfm.runs.folder import RunFolder
from graphfm.runs.run import Run
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

SMALL = "synthetic:small:0.02"
TRAIN = ("train", "--dataset", SMALL, "--epochs", "2", "--device", "cpu")
FILES = {"config.json", "metrics.jsonl", "model.safetensors", "result.json", "curves.png"}
KEPT = {"checkpoints", "checkpoints/1.json", "checkpoints/1.safetensors"}
PROMISED = {
    "dataset", "method", "backbone", "layers", "test", "val", "best_epoch", "epochs",
    "seconds_per_epoch", "peak_bytes", "out",
}  # fmt: skip


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self):
        (line,) = self.out.splitlines()
        return json.loads(line)


def graphfm(*arguments) -> Ended:
    """Run a command in this process."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["graphfm", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return Ended(end.value.code, out.getvalue(), err.getvalue())


def command(*arguments) -> list[str]:
    """The same, for a process of its own."""
    program = "from graphfm.cli import main; main()"
    return [sys.executable, "-c", program, *map(str, arguments)]


def refused(ended: Ended, reason: str) -> None:
    """Exit code 2, nothing on stdout, and one line on stderr."""
    assert (ended.code, ended.out) == (2, ""), ended
    assert ended.err.startswith("graphfm: ")
    assert ended.err.count("\n") == 1, ended.err
    assert re.search(reason, ended.err), ended.err


def tree(path: Path) -> set[str]:
    return {str(item.relative_to(path)) for item in path.rglob("*")}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, Ended]:
    """A run, and what the command that made it printed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    return out, graphfm(*TRAIN, "--out", out, "--json")


@pytest.fixture
def run(trained, here) -> Path:
    """A copy of the run that a test may damage."""
    return shutil.copytree(trained[0], here / "run")


def other_graph(path: Path, **options) -> Graph:
    """Five nodes with as many features as the training graph has."""
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))
    graph = Graph.from_edges([[0, 1, 1, 4], [1, 0, 2, 4]], x, **options)
    graph.save(path)
    return graph


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


# Training


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
        "transform": False, "jump": False,
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


# Reading a run


def test_evaluate_reproduces_the_scores_of_the_run(trained):
    out, ended = trained
    scores = graphfm("evaluate", out, "--device", "cpu", "--json")
    assert scores.err == ""
    assert scores.json.keys() == {"run", "dataset", "train", "val", "test"}
    for split in ("val", "test"):
        assert scores.json[split] == ended.json[split]
    text = graphfm("evaluate", out, "--device", "cpu").out
    assert f"{ended.json['test']:.4f}" in text


def test_evaluate_on_a_graph_with_other_classes_is_refused(run, here):
    other_graph(here / "g.npz", y=[0, 1, 2, 0, 1])
    refused(graphfm("evaluate", run, "--dataset", "g.npz"), "3 classes.*trained on 10 classes")


def test_evaluate_warns_of_a_graph_that_changed(here):
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 0, 0]}
    other_graph(here / "g.npz", y=[0, 1, 0, 1, -1], **masks)
    graphfm("train", "--dataset", "g.npz", "--epochs", 1, "--out", "run")
    assert graphfm("evaluate", "run").err == ""
    other_graph(here / "g.npz", y=[0, 1, 1, 1, -1], **masks)
    ended = graphfm("evaluate", "run")
    assert ended.code == 0
    assert "warning: g.npz has changed" in ended.err


def test_predict_writes_a_row_for_every_node(trained, here):
    ended = graphfm("predict", trained[0], "--out", "p.csv", "--json")
    assert ended.json == {"run": str(trained[0]), "dataset": SMALL, "nodes": 200, "out": "p.csv"}
    header, rows = read_csv(here / "p.csv")
    assert header == ["node", "name", "class", "probability"]
    assert [row[0] for row in rows] == [str(node) for node in range(200)]
    assert {row[1] for row in rows} == {""}
    assert {int(row[2]) for row in rows} <= set(range(10))
    assert all(0.1 <= float(row[3]) <= 1 for row in rows)


def test_predictions_agree_with_the_scores(trained, here):
    graphfm("predict", trained[0], "--out", "p.csv")
    graph = load(SMALL)
    predicted = torch.tensor([int(row[2]) for row in read_csv(here / "p.csv")[1]])
    right = (predicted == graph.y)[graph.test_mask].float().mean()
    assert float(right) == trained[1].json["test"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"node_names": ["a", "ß", "c,d", 'e"f', "g\nh"]},
        {"y": [0, 1, 2, 3, -1], "num_classes": 10},
        {"y": [0, 1, 2, 3, 4], "train_mask": [1, 0, 0, 0, 0]},
    ],
)
def test_predict_on_a_graph_the_model_has_never_seen(run, here, options):
    graph = other_graph(here / "g.npz", **options)
    ended = graphfm("predict", run, "--dataset", "g.npz", "--out", "p.csv")
    assert (ended.code, ended.out, ended.err) == (0, "", "5 predictions in p.csv\n")
    rows = read_csv(here / "p.csv")[1]
    assert [row[1] for row in rows] == list(graph.node_names or [""] * 5)


def test_predict_names_classes_and_joins_many(here):
    y = [[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0], [-1, -1, -1]]
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 1, 0]}
    other_graph(here / "g.npz", y=y, class_names=["red", "green", "blue"], **masks)
    graphfm("train", "--dataset", "g.npz", "--epochs", 3, "--out", "run")
    assert graphfm("predict", "run", "--out", "p.csv").code == 0
    for _, _, names, chances in read_csv(here / "p.csv")[1]:
        chosen = names.split("|") if names else []
        assert set(chosen) <= {"red", "green", "blue"}
        assert len(chosen) == (chances.count("|") + 1 if chances else 0)
        assert all(float(chance) > 0.5 for chance in chances.split("|") if chance)


def test_predict_with_other_features_is_refused_and_writes_nothing(run, here):
    Graph.from_edges([[0], [1]], torch.ones(2, 3)).save(here / "g.npz")
    before = tree(here)
    ended = graphfm("predict", run, "--dataset", "g.npz", "--out", "p.csv")
    refused(ended, "3 features per node, but the model was trained on 64")
    assert tree(here) == before


@pytest.mark.parametrize("out", ["missing/p.csv", "g.npz/p.csv", ".", "/", "folder", "n" * 300])
def test_predict_to_an_impossible_place_is_refused(run, here, out):
    other_graph(here / "g.npz")
    (here / "folder").mkdir()
    before = tree(here)
    refused(graphfm("predict", run, "--dataset", "g.npz", "--out", out), f"cannot write {out}")
    assert tree(here) == before


def test_predict_writes_through_a_link(run, here):
    (here / "link.csv").symlink_to("target.csv")
    assert graphfm("predict", run, "--out", "link.csv").code == 0
    assert (here / "link.csv").is_symlink()
    assert (here / "target.csv").read_text().startswith("node,name,class,probability")


# Listing


@pytest.mark.parametrize(
    ("name", "known"), [("datasets", DATASETS), ("methods", METHODS), ("backbones", BACKBONES)]
)
def test_what_there_is_is_listed(name, known):
    ended = graphfm(name, "--json")
    assert [entry["name"] for entry in ended.json] == list(known)
    assert all(entry["about"] for entry in ended.json)
    text = graphfm(name)
    assert (text.code, text.err) == (0, "")
    assert all(
        f"{entry['name']} " in text.out and entry["about"] in text.out for entry in ended.json
    )


# Help


CONTRACT = {
    "train": "dataset backbone method layers hidden fanout batch-size parts parts-per-batch beta "
    "dropout lr epochs seed device out json",
    "evaluate": "json",
    "predict": "dataset out json",
    "datasets": "json",
    "methods": "json",
    "backbones": "json",
    "info": "json",
}


@pytest.mark.parametrize("name", CONTRACT)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_mentions_every_option_of_the_contract(name, flag):
    ended = graphfm(name, flag)
    assert (ended.code, ended.err) == (0, "")
    shown = set(re.findall(r"--([a-z-]+)", ended.out))
    assert set(CONTRACT[name].split()) <= shown


def test_help_names_every_command():
    ended = graphfm("--help")
    assert ended.code == 0
    assert all(name in ended.out for name in CONTRACT)


def test_version():
    assert re.fullmatch(r"graphfm \d+\.\d+\S*\n", graphfm("--version").out)


def help_texts() -> dict[str, str]:
    """What the help of train says of each option, by name."""
    found, name = {}, None
    for line in graphfm("train", "--help").out.splitlines():
        if option := re.match(r"  (?:-\w, )?--(?:\[no-\])?([a-z-]+)", line):
            name = option[1].replace("-", "_")
        if name is not None:
            found[name] = f"{found.get(name, '')} {line.strip()}"
    return found


def help_defaults() -> dict[str, str]:
    texts = {name: re.search(r"\[default: (.*)\]", text) for name, text in help_texts().items()}
    return {name: found[1] for name, found in texts.items() if found}


def as_text(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(as_text, value))
    return value if isinstance(value, str) else f"{value:g}"


@pytest.mark.parametrize("kind", [Training, Settings, GCNIISettings, PNASettings])
def test_defaults_in_help_are_those_of_the_settings(kind):
    shown = help_defaults()
    layers = f"{Settings.layers}; gcnii {GCNIISettings.layers}"
    expected = {item.name: as_text(item.default) for item in fields(kind)}
    if "layers" in expected:
        expected["layers"] = layers
    assert {name: shown[name] for name in expected} == expected


def test_defaults_in_help_are_those_of_a_run():
    shown, parameters = help_defaults(), inspect.signature(Run.make).parameters
    for name in ("dataset", "method", "device"):
        assert shown[name] == parameters[name].default
    assert shown["backbone"] == Run.make().backbone


def test_defaults_that_differ_are_shown_with_their_owners():
    shown = help_defaults()
    assert shown["beta"] == "graphfm-ib 0.7; graphfm-ob 0.3"
    assert shown["fanout"] == "graphsage, shadow 5; graphfm-ib 1; vr-gcn 2"


def test_the_options_of_train_are_the_declared_settings():
    declared = {name for kind in BACKBONES.values() for name in options_in(kind.Settings)}
    declared |= {name for method in METHODS.values() for name in options_in(method)}
    declared |= options_in(Training).keys()
    others = {
        "dataset", "method", "backbone", "device", "out", "recipe", "resume", "checkpoint_every",
        "explain", "json", "quiet", "verbose", "help",
    }  # fmt: skip
    assert help_texts().keys() == declared | others


def test_every_setting_has_a_help_text():
    for owner in [*(kind.Settings for kind in BACKBONES.values()), *METHODS.values(), Training]:
        for option in options_in(owner).values():
            assert option.about.help.endswith("."), (owner, option.name)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_fits_80_columns_with_the_common_options_first(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = graphfm("train", "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    panels = [line for line in lines if re.fullmatch(r"\w[\w ]*:", line)]
    assert panels == [
        "Common options:", "Network options:", "Method options:", "Training options:",
        "Run options:", "Options:",
    ]  # fmt: skip
    common = lines[lines.index(panels[0]) : lines.index(panels[1])]
    names = [line.split()[0] for line in common if line.startswith("  --")]
    assert names == [
        "--dataset", "--method", "--backbone", "--epochs", "--lr", "--hidden", "--layers",
        "--batch-size", "--device", "--out",
    ]  # fmt: skip
    assert len(lines) < 180


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


# Refusals


WRONG = [
    (["--nope"], "No such option: --nope"),
    (["extra"], "unexpected extra argument"),
    (["--method", "nope"], "unknown method 'nope'; choose one of full"),
    (["--method", "graphsag"], r"\(did you mean graphsage\?\)"),
    (["--backbone", "nope"], "unknown backbone 'nope'; choose one of sage, gcn, gcnii, pna, mlp"),
    (["--device", "tpu"], "unknown device 'tpu'; choose one of auto, cpu, cuda"),
    (["--dataset", "nope"], "unknown dataset 'nope'; choose one of debian"),
    (["--dataset", ""], "unknown dataset ''"),
    (["--dataset", "nope.npz"], "nope.npz: no such file; give the path of an .npz file"),
    (["--dataset", "n" * 300 + ".npz"], "File name too long"),
    (["--dataset", "synthetic:nope"], "unknown synthetic shape 'nope'"),
    (["--dataset", "synthetic:small:x"], "the scale is 'x'; expected a number"),
    (["--dataset", "synthetic:small:-1"], "scale"),
    (["--dataset", "synthetic:small:nan"], "scale"),
    (["--dataset", "synthetic:small:1e9"], "use a smaller scale"),
    (["--alpha", "0.1"], "alpha is not a setting of backbone sage.*belongs to backbone gcnii"),
    (["--aggregators", "mean"], "aggregators is not a setting.*belongs to backbone pna"),
    (["--fanout", "1,1"], "fanout is not a setting of backbone sage or method full"),
    (["--fanout", "1,x"], "--fanout is '1,x'; expected whole numbers separated by commas; see"),
    (["--beta", "0.3,"], "--beta is '0.3,'; expected numbers separated by commas"),
    (["--batch-size", "4"], "batch_size is not a setting"),
    (["--backbone", "pna", "--aggregators", "median"], "aggregators is median; expected some of"),
    (["--backbone", "pna", "--scalers", ""], "scalers is"),
    (["--backbone", "gcnii", "--alpha", "2"], "alpha is 2.0; expected 0 to 1"),
    (["--backbone", "gcnii", "--theta", "nan"], "theta is nan"),
    (["--backbone", "gcnii", "--theta", "inf"], "theta is inf"),
    (["--epochs", "many"], "--epochs is 'many'; expected a whole number; see 'graphfm train --h"),
    (["--epochs", "1.5"], "--epochs is '1.5'; expected a whole number"),
    (["--lr", "abc"], "--lr is 'abc'; expected a number; see 'graphfm train --help'"),
    (["--epochs", "-1"], "epochs is -1; expected 1 or more"),
    (["--epochs", "0"], "epochs is 0; expected 1 or more"),
    (["--layers", "0"], "layers is 0; expected 1 or more"),
    (["--layers", str(10**18)], "layers is 1000000000000000000; expected at most"),
    (["--hidden", "-5"], "hidden is -5; expected"),
    (["--hidden", str(10**30)], "hidden is 10+; expected at most"),
    (["--seed", str(10**30)], "seed is 10+; expected at most"),
    (["--dropout", "1.5"], "dropout is 1.5; expected 0 or more and below 1"),
    (["--dropout", "nan"], "dropout is nan"),
    (["--lr", "0"], "lr is 0.0; expected above 0, and at most a million"),
    (["--lr", "1e9"], "lr is 1000000000.0; expected above 0, and at most a million"),
    (["--lr", "inf"], "lr is inf"),
    (["--clip", "-1"], "clip is -1.0; expected 0 or more"),
    (["--weight-decay", "nan"], "weight_decay is nan"),
    (["--schedule", "nope"], "schedule is nope; expected constant, cosine or step"),
    (["--patience", "-1"], "patience is -1"),
    (["--eval-every", "0"], "eval_every is 0"),
]


@pytest.mark.parametrize(("options", "reason"), WRONG)
def test_wrong_options_get_one_line_and_leave_nothing(here, options, reason):
    refused(graphfm(*TRAIN, *options), reason)
    assert tree(here) == set()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nope"], "No such command 'nope'"),
        (["evaluate"], "Missing argument 'RUN'"),
        (["evaluate", "nope"], "nope is not a run: there is no such folder"),
        (["predict", "nope"], "Missing option '--out'"),
        (["predict", "nope", "--out", "p.csv"], "nope is not a run"),
        (["info"], "Missing argument 'DATASET'"),
        (["info", "nope"], "unknown dataset 'nope'"),
        (["datasets", "--nope"], "No such option"),
    ],
)
def test_wrong_commands_get_one_line(here, arguments, reason):
    refused(graphfm(*arguments), reason)
    assert tree(here) == set()


def test_no_command_shows_the_help():
    ended = graphfm()
    assert ended.code == 0
    assert "Usage: graphfm" in ended.out
    assert ended.err == ""


@pytest.mark.parametrize("name", ["train", "evaluate", "predict"])
def test_cuda_without_a_gpu_is_refused(run, monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    arguments = {
        "train": ("train", "--dataset", SMALL),
        "evaluate": ("evaluate", run),
        "predict": ("predict", run, "--out", "p.csv"),
    }[name]
    refused(graphfm(*arguments, "--device", "cuda"), "torch sees no GPU; use device cpu or auto")
    assert not Path("p.csv").exists()
    assert not Path("runs").exists()


@pytest.mark.parametrize("name", ["evaluate", "predict"])
def test_an_unknown_device_is_refused(run, name):
    out = ("--out", "p.csv") if name == "predict" else ()
    refused(graphfm(name, run, *out, "--device", "tpu"), "unknown device 'tpu'")


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("full", "full is not empty; choose another folder"),
        ("file", "cannot write to file"),
        ("file/run", "cannot write to file/run"),
        ("new/" + "n" * 300, "cannot write to new/n+: File name too long"),
    ],
)
def test_out_where_no_run_can_be_is_refused(here, out, reason):
    (here / "full").mkdir()
    (here / "full" / "mine.txt").write_text("mine")
    (here / "file").write_text("mine")
    before = tree(here)
    refused(graphfm(*TRAIN, "--out", out), reason)
    assert tree(here) == before


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_out_in_a_place_that_cannot_be_written_is_refused(here, monkeypatch, code):
    def refuse(self, *_, **__):
        raise OSError(code, os.strerror(code), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    refused(graphfm(*TRAIN, "--out", "run"), f"cannot write to run: {os.strerror(code)}")
    monkeypatch.undo()
    assert tree(here) == set()


def test_an_existing_folder_that_cannot_be_written_is_refused(here, monkeypatch):
    (here / "run").mkdir()

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("graphfm.runs.folder.TemporaryFile", refuse)
    refused(graphfm(*TRAIN, "--out", "run"), "cannot write to run: Permission denied")
    assert tree(here) == {"run"}


@pytest.mark.parametrize("name", ["train", "info", "predict", "evaluate"])
@pytest.mark.parametrize("cut", [0, 10, 500])
def test_a_damaged_graph_gets_one_line_and_leaves_nothing(trained, here, name, cut):
    other_graph(here / "g.npz")
    (here / "g.npz").write_bytes((here / "g.npz").read_bytes()[:cut])
    arguments = {
        "train": ("train", "--dataset", "g.npz"),
        "info": ("info", "g.npz"),
        "predict": ("predict", trained[0], "--dataset", "g.npz", "--out", "p.csv"),
        "evaluate": ("evaluate", trained[0], "--dataset", "g.npz"),
    }[name]
    refused(graphfm(*arguments), "g.npz: damaged, or not an .npz file")
    assert tree(here) == {"g.npz"}


def test_a_graph_without_splits_cannot_be_trained_on(here):
    other_graph(here / "g.npz", y=[0, 1, 0, 1, 0])
    refused(graphfm("train", "--dataset", "g.npz"), "the graph has no train_mask")
    assert tree(here) == {"g.npz"}


def test_features_too_large_to_compute_with_leave_no_run(here):
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 0, 0]}
    x = np.full((5, 4), 3e38, dtype=np.float32)
    Graph.from_edges([[0], [1]], x, [0, 1, 0, 1, 0], **masks).save(here / "g.npz")
    ended = graphfm("train", "--dataset", "g.npz", "--out", "run")
    assert (ended.code, ended.out) == (2, "")
    assert re.search(r"graphfm: the loss is \S+ in epoch 1", ended.err)
    assert tree(here) == {"g.npz"}


CONFIGS = {
    "empty": b"",
    "not text": b"\xff\xfe\x00",
    "cut": b'{"run": {"dataset"',
    "list": b"[]",
    "nothing in it": b"{}",
    "nested": b"[" * 100_000,
    "empty parts": b'{"run": {}, "graph": {}}',
    "parts of lists": b'{"run": [], "graph": []}',
}
GRAPHS = [
    {"num_classes": "ten"},
    {"num_classes": -1},
    {"num_classes": 11},
    {"num_features": 10**30},
    {"num_features": 10**15},
    {"num_features": None},
    {"class_names": ["only one"]},
    {"class_names": list(range(10))},
    {"class_names": 5},
]
RUNS = [
    {"backbone": "nope"},
    {"backbone": []},
    {"method": "nope"},
    {"training": {"epochs": "x"}},
    {"training": {"epochs": -1}},
    {"backbone_settings": {"layers": 2.5}},
    {"backbone_settings": {"layers": 10**12}},
    {"backbone_settings": {"nope": 1}},
    {"backbone_settings": None},
]


def both_refuse(run: Path, reason: str) -> None:
    refused(graphfm("evaluate", run), reason)
    refused(graphfm("predict", run, "--out", "p.csv"), reason)
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("content", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_damaged_config_gets_one_line(run, content):
    (run / "config.json").write_bytes(content)
    both_refuse(run, r"config\.json")


@pytest.mark.parametrize(
    ("part", "change"), [("graph", c) for c in GRAPHS] + [("run", c) for c in RUNS]
)
def test_a_config_of_nonsense_gets_one_line(run, part, change):
    config = json.loads((run / "config.json").read_text())
    config[part].update(change)
    (run / "config.json").write_text(json.dumps(config))
    both_refuse(run, str(run))


def pickled() -> bytes:
    stream = io.BytesIO()
    torch.save({"weight": torch.ones(2)}, stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:4],
        lambda raw: raw[:100],
        lambda raw: raw[:-1],
        lambda raw: raw + b"\0",
        lambda raw: b"\xff" * len(raw),
        lambda raw: raw.replace(b"F32", b"F99", 1),
        lambda raw: raw.replace(b"layers.0", b"layers.9", 1),
        lambda raw: pickled(),
    ],
    ids=["empty", "4 bytes", "in header", "cut", "long", "ones", "type", "name", "pickle"],
)
def test_damaged_weights_get_one_line(run, damage):
    weights = run / "model.safetensors"
    weights.write_bytes(damage(weights.read_bytes()))
    both_refuse(run, r"model\.safetensors is damaged or does not fit")


def test_weights_of_another_network_get_one_line(run):
    graphfm(*TRAIN, "--hidden", 8, "--out", "other")
    shutil.copy("other/model.safetensors", run)
    both_refuse(run, r"model\.safetensors is damaged or does not fit")


def test_a_run_without_weights_says_so(run):
    (run / "model.safetensors").unlink()
    both_refuse(run, "has no model.safetensors; the run ended before its first evaluation")


def test_too_little_memory_gets_one_line_and_leaves_nothing(here, monkeypatch):
    monkeypatch.setattr(Trainer, "step", lambda *_: torch.empty(1 << 50))
    ended = graphfm(*TRAIN, "--out", "run")
    assert ended.code == 2
    (line,) = ended.err.splitlines()[2:]
    assert line.startswith("graphfm: memory ran out (memory on cpu, about: graph ")
    assert "); use a method that samples, such as graphfm-ib, or lower hidden" in line
    assert tree(here) == set()


def test_a_full_disk_gets_one_line(here, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "run/metrics.jsonl")

    monkeypatch.setattr(RunFolder, "on_epoch", fail)
    ended = graphfm(*TRAIN, "--out", "run")
    assert ended.code == 2
    assert ended.err.splitlines()[2:] == [
        "graphfm: the training was stopped by an error: No space left on device "
        "(run/metrics.jsonl); make room for run"
    ]
    assert tree(here) == set()


def test_a_run_that_another_process_began_meanwhile_is_left_alone(here, monkeypatch):
    def load_slowly(*_, **__):
        (here / "run").mkdir()
        (here / "run" / "config.json").write_text("{}")
        return load(SMALL)

    monkeypatch.setattr("graphfm.cli.train.load", load_slowly)
    ended = graphfm(*TRAIN, "--out", "run")
    assert ended.code == 2
    assert "run is not empty" in ended.err
    assert tree(here / "run") == {"config.json"}


def test_a_mistake_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(Trainer, "step", lambda *_: [][0])
    with pytest.raises(IndexError):
        graphfm(*TRAIN)


# Ctrl-C


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


def test_a_run_that_continues_is_not_explained(here):
    """It would be trained: the plan is that of a new training."""
    refused(graphfm("train", "--resume", "run", "--explain"), "leave out --resume")


def test_a_step_cannot_be_captured_without_a_gpu(here):
    ended = graphfm(*TRAIN, "--device", "cpu", "--capture", "on")
    refused(ended, "capture is on, but there is no GPU; set capture to auto or off")
    assert tree(here) == set()


def test_a_table_without_any_graph_is_refused(here):
    ended = graphfm("reproduce", "table2", "--datasets", "flickr")
    refused(ended, "nothing to run: flickr is not on this machine; get it with: graphfm datasets")
    assert tree(here) == set()


# Going on


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


@pytest.mark.parametrize("often", ["often", "-3", "1.5steps"])
def test_an_interval_that_is_none_is_refused(here, often):
    refused(graphfm(*TRAIN, f"--checkpoint-every={often}"), "checkpoint-every is .*; expected")
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


# Recipes


@pytest.mark.parametrize("own", [True, False])
def test_a_recipe_on_its_own_graph_is_held_against_the_paper(monkeypatch, own):
    ran = []
    monkeypatch.setattr("graphfm.cli.train._train", lambda options, *_, **__: ran.append(options))
    other = () if own else ("--dataset", SMALL)
    ended = graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--epochs", 3, *other)
    assert (ended.code, ran[0]["epochs"], ran[0]["beta"]) == (0, 3, (0.1,))
    assert ran[0]["dataset"] == ("flickr" if own else SMALL)
    said = "gcn, GraphFM-OB on flickr has 0.5446 in the paper\n"
    assert ended.err == (said if own else "")


def test_another_method_than_the_recipes_is_said_and_not_held_against_the_paper(monkeypatch):
    ran = []
    monkeypatch.setattr("graphfm.cli.train._train", lambda options, *_, **__: ran.append(options))
    ended = graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--method", "gas")
    assert (ended.code, ran[0]["method"], "beta" in ran[0]) == (0, "gas", False)
    assert ended.err.startswith(
        "table2-gcn-flickr-graphfm-ob is a run of graphfm-ob on gcn; with gas on gcn it is not a "
        "row of the paper, and "
    )
    assert "beta" in ended.err
    assert ended.err.endswith(" are left out\n")
    assert ended.err.count("\n") == 1


def test_what_a_recipe_leaves_out_may_be_given(monkeypatch):
    ran = []
    monkeypatch.setattr("graphfm.cli.train._train", lambda options, *_, **__: ran.append(options))
    ended = graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--backbone", "mlp")
    assert ran[0]["backbone"] == "mlp"
    assert "with graphfm-ob on mlp it is not a row of the paper" in ended.err
    graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--beta", "0.7", "--lr", 0.5)
    assert (ran[1]["beta"], ran[1]["lr"]) == ((0.7,), 0.5)
