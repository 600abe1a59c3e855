"""Wrong options and commands are refused with one line, and nothing is left."""

from pathlib import Path

import pytest
import torch

from tests.unit.cli.commands import SMALL, TRAIN, graphfm, refused, tree

pytestmark = pytest.mark.usefixtures("here")

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
    (["--schedule", "nope"], "schedule is nope; expected constant, cosine, step or plateau"),
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


def test_a_step_cannot_be_captured_without_a_gpu(here):
    ended = graphfm(*TRAIN, "--device", "cpu", "--capture", "on")
    refused(ended, "capture is on, but there is no GPU; set capture to auto or off")
    assert tree(here) == set()


def test_a_table_without_any_graph_is_refused(here):
    ended = graphfm("reproduce", "table2", "--datasets", "flickr")
    refused(ended, "nothing to run: flickr is not on this machine; get it with: graphfm datasets")
    assert tree(here) == set()


@pytest.mark.parametrize("often", ["often", "-3", "1.5steps"])
def test_an_interval_that_is_none_is_refused(here, often):
    refused(graphfm(*TRAIN, f"--checkpoint-every={often}"), "checkpoint-every is .*; expected")
    assert tree(here) == set()
