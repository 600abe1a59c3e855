"""The settings of graphfm staleness are those of train, with defaults of its own."""

import re

import pytest

from graphfm.experiments.outcome import FAILED, Outcome
from tests.unit.cli.commands import graphfm, refused


@pytest.fixture
def asked(monkeypatch) -> list[dict]:
    """The options that reach the experiment, which ends at once."""
    found = []

    def stop(options, *_, **__):
        found.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("graphfm.cli.staleness.compare_staleness", stop)
    return found


def test_the_defaults_are_the_commands_own(asked):
    graphfm("staleness")
    assert asked == [
        {
            "dataset": "debian", "backbone": "gcn", "layers": 3, "hidden": 64, "dropout": 0.0,
            "parts": 24, "parts_per_batch": 4, "beta": 0.3, "epochs": 15, "lr": 0.01, "seed": 0,
            "device": "auto",
        }
    ]  # fmt: skip
    shown = " ".join(graphfm("staleness", "--help").out.split())
    for name, default in (("layers", "3"), ("parts-per-batch", "4"), ("beta", "0.3")):
        assert re.search(rf"--{name} (?:(?!--).)*\[default: {default}\]", shown)


def test_values_have_the_declared_types(asked):
    graphfm("staleness", "--layers", "2", "--lr", "1", "--beta", "0.5")
    graphfm("staleness", "--beta", "0.1,0.2")
    assert {"layers": 2, "lr": 1.0, "beta": 0.5}.items() <= asked[0].items()
    assert asked[1]["beta"] == (0.1, 0.2)


def test_a_wrong_value_is_told_as_in_train(asked):
    refused(
        graphfm("staleness", "--layers", "x"),
        "--layers is 'x'; expected a whole number; see 'graphfm staleness --help'",
    )
    assert asked == []


@pytest.mark.parametrize(("text", "beta"), [("0.1,0.2", (0.1, 0.2)), ("0.1", (0.1,))])
def test_beta_reaches_the_method_that_takes_it(monkeypatch, text, beta):
    runs = []

    def refuse(cell, *_):
        runs.append(cell.run)
        return Outcome(status=FAILED, error="nothing is trained here")

    monkeypatch.setattr("graphfm.experiments.staleness.run_in_child", refuse)
    few = ("--dataset", "synthetic:small:0.05", "--device", "cpu", "--parts", "4")
    assert graphfm("staleness", *few, "--beta", text).code == 1
    taken = [run.method_settings.get("beta") for run in runs]
    assert taken == [beta if run.method == "graphfm-ob" else None for run in runs]
